#include "vgpu/core/machine.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {

// How often, of 256 times, a strong load that may return an older value does, and one that may be held is.
static std::uint32_t older_values_under(Policy policy) {
  switch (policy) {
    case Policy::kFair:
    case Policy::kEagerDelivery:
      return 0;
    case Policy::kLazyDelivery:
      return 192;
    default:
      return 64;
  }
}

Machine::Machine() = default;
Machine::~Machine() = default;

Result<std::unique_ptr<Machine>> Machine::create(const MachineConfig& config, DeviceCallTable* calls) {
  if (config.n_pes < 1 || config.n_pes > kMaxPes) {
    return usage_error("a virtual node has 1 to " + std::to_string(kMaxPes) + " PEs, not " +
                       std::to_string(config.n_pes));
  }
  std::unique_ptr<Machine> machine(new Machine());  // NOLINT: the constructor is private
  machine->state_ = std::make_unique<State>(config);
  State& state = *machine->state_;
  state.owner = machine.get();
  state.calls = calls;
  MemoryConfig memory_config;
  memory_config.n_pes = config.n_pes;
  memory_config.seed = config.seed;
  memory_config.peers_reachable = config.peers_reachable;
  memory_config.older_values = state.hold_share = older_values_under(config.policy);
  memory_config.checkers = config.checkers;
  Result<std::unique_ptr<Memory>> memory = Memory::create(memory_config, state.findings);
  if (!memory.ok()) return memory.error();
  state.memory = std::move(*memory);
  state.pes.resize(static_cast<std::size_t>(config.n_pes));
  for (PeState& pe : state.pes) pe.sms.resize(static_cast<std::size_t>(config.gpu.sms));
  return machine;
}

Memory& Machine::memory() { return *state_->memory; }
FindingLog& Machine::findings() { return state_->findings; }
const MachineConfig& Machine::config() const { return state_->config; }
std::uint64_t Machine::now_ns() const { return state_->to_ns(state_->now_cycles); }
void Machine::advance_to(std::uint64_t ns) {
  state_->now_cycles = std::max(state_->now_cycles, state_->to_cycles(ns));
}

Result<ModuleId> Machine::load_module(int pe, const std::string& ptx, const std::string& name) {
  return state_->load(pe, ptx, name);
}
Status Machine::unload_module(int pe, ModuleId module) { return state_->unload(pe, module); }

void Machine::set_register_count(ModuleId module, const std::string& kernel, std::uint32_t registers) {
  Result<const KernelImage*> image = state_->entry(module, kernel);
  if (image.ok()) state_->modules[module]->registers[(*image)->index] = registers;
}

Result<KernelInfo> Machine::kernel_info(ModuleId module, const std::string& kernel) const {
  Result<const KernelImage*> found = state_->entry(module, kernel);
  if (!found.ok()) return found.error();
  const KernelImage& image = **found;
  const PeModule& loaded = *state_->modules[module];
  const Program& program = *loaded.program;
  KernelInfo info;
  info.name = kernel;
  info.param_offsets = image.param_offsets;
  info.param_sizes = image.param_sizes;
  info.param_bytes = image.param_bytes;
  info.static_shared = program.layouts.at(image.index).static_bytes;
  info.local_bytes = program.stack_bytes.at(image.index);
  info.registers = state_->registers_of(loaded, image);
  info.const_bytes = program.const_bytes.at(image.index);
  std::uint64_t threads = 1;
  for (const std::uint32_t n : image.function->max_threads) threads *= std::max(n, 1U);
  info.max_threads = static_cast<std::uint32_t>(state_->config.gpu.max_threads_per_block);
  if (image.function->max_threads[0] != 0)
    info.max_threads = std::min<std::uint32_t>(info.max_threads, static_cast<std::uint32_t>(threads));
  return info;
}

std::vector<std::string> Machine::kernel_names(ModuleId module) const {
  std::vector<std::string> names;
  if (module >= state_->modules.size()) return names;
  for (const auto& image : state_->modules[module]->program->functions) {
    if (image != nullptr && image->function->is_entry) names.push_back(image->function->name);
  }
  return names;
}

Result<std::pair<std::uint64_t, std::uint64_t>> Machine::variable(int pe, ModuleId module,
                                                                  const std::string& name) const {
  if (module >= state_->modules.size() || state_->modules[module]->pe != pe)
    return usage_error("no such module");
  const PeModule& loaded = *state_->modules[module];
  std::vector<std::string> names;
  const auto& variables = loaded.program->module->variables;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (loaded.addresses[i] == 0) continue;
    if (variables[i].name == name)
      return std::pair<std::uint64_t, std::uint64_t>{loaded.addresses[i], variables[i].size};
    names.push_back(variables[i].name);
  }
  return usage_error("no variable '" + name + "' in " + loaded.name, did_you_mean(name, names));
}

Result<int> Machine::blocks_per_sm(ModuleId module, const std::string& kernel, std::uint32_t threads,
                                   std::uint32_t dynamic_shared) const {
  Result<const KernelImage*> image = state_->entry(module, kernel);
  if (!image.ok()) return image.error();
  if (threads == 0 || threads > static_cast<std::uint32_t>(state_->config.gpu.max_threads_per_block))
    return 0;
  return state_->blocks_per_sm(
      state_->block_needs(*state_->modules[module], **image, threads, dynamic_shared));
}

Result<LaunchId> Machine::launch(const LaunchRequest& request) {
  if (request.pe < 0 || request.pe >= state_->config.n_pes)
    return usage_error("no PE " + std::to_string(request.pe));
  if (request.module < state_->modules.size() && state_->modules[request.module]->pe != request.pe) {
    return usage_error("the module was loaded by another PE");
  }
  return state_->launch(request);
}
bool Machine::finished(LaunchId id) const { return state_->finished.contains(id); }
std::uint64_t Machine::finished_at_ns(LaunchId id) const {
  const auto at = state_->finished.find(id);
  return at == state_->finished.end() ? 0 : at->second;
}

Machine::Progress Machine::run(std::uint64_t budget) { return state_->run(budget); }
std::uint64_t Machine::next_wake_ns() const {
  const std::uint64_t cycle = state_->next_wake_cycle();
  // Rounded up, so that advance_to() of it wakes.
  return cycle == ~0ULL ? cycle : state_->to_ns(cycle) + 1;
}
int Machine::held_back_pe() const { return state_->ready.held_back_pe(); }
bool Machine::idle() const {
  return std::all_of(state_->pes.begin(), state_->pes.end(),
                     [](const PeState& pe) { return pe.grids.empty(); });
}

void Machine::explain_stuck(const std::vector<HostWait>& hosts, bool livelock) {
  state_->explain_stuck(hosts, livelock);
}
void Machine::on_output(std::function<void(int pe, const std::string& text)> sink) {
  state_->sink = std::move(sink);
}
void Machine::start_trace(const TraceFilter& filter) { state_->tracer = std::make_unique<Tracer>(filter); }
void Machine::start_meter() {
  state_->meter = std::make_unique<Meter>(*state_->memory, state_->config.n_pes);
  state_->memory->set_meter(state_->meter.get());
}
JobWork Machine::metered() { return state_->meter == nullptr ? JobWork() : state_->meter->take(); }
std::vector<TraceEvent> Machine::trace() const {
  return state_->tracer == nullptr ? std::vector<TraceEvent>() : state_->tracer->events();
}
std::uint64_t Machine::trace_skipped() const {
  return state_->tracer == nullptr ? 0 : state_->tracer->skipped();
}
Machine::Counters Machine::counters() const { return state_->counters; }

}  // namespace echolo::vgpu
