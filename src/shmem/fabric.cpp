#include "shmem/fabric.hpp"

#include <cstring>
#include <map>
#include <stdexcept>

#include "shmem/call.hpp"
#include "shmem/operation.hpp"
#include "shmem/world.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;

namespace {
const FabricRules& rules_of(const FabricConfig& config) {
  const Result<const FabricRules*> found = find_fabric(config.fabric);
  if (!found.ok()) throw std::logic_error(found.error().message);
  return **found;
}
}  // namespace

struct Fabric::State {
  explicit State(const FabricConfig& config)
      : rules(rules_of(config)),
        world(config.n_pes, rules.peers_reachable),
        delivery(rules, config.timing, config.seed, config.n_pes) {}
  const FabricRules& rules;
  World world;
  Delivery delivery;
  vgpu::Memory* memory = nullptr;
  vgpu::FindingLog* findings = nullptr;
  std::map<std::string, vgpu::DeviceCall, std::less<>> device_calls;

  static CallOutcome on_device(void* self, vgpu::DeviceCallContext& context, std::uint64_t variant);
};

namespace {

std::size_t bytes_of_argument(const Operation& op, char letter) {
  switch (letter) {
    case 'i':
      return 4;
    case 'v':
      return op.element->bytes;
    default:
      return 8;
  }
}

}  // namespace

CallOutcome Fabric::State::on_device(void* self, vgpu::DeviceCallContext& context, std::uint64_t variant) {
  auto& state = *static_cast<State*>(self);
  const Operation& op = *reinterpret_cast<const Operation*>(variant);
  std::uint64_t arguments[8] = {};
  for (std::size_t i = 0; i < op.arguments.size(); ++i) {
    const std::size_t bytes = bytes_of_argument(op, op.arguments[i]);
    std::memcpy(&arguments[i], context.arguments + context.offsets[i], bytes);
    if (op.arguments[i] == 'i') arguments[i] = static_cast<std::uint64_t>(sign_extend(arguments[i], 4));
  }
  Call call{op,
            state.world,
            state.delivery,
            context.memory,
            context.findings,
            context.pe,
            std::span(arguments, op.arguments.size()),
            context.token,
            context.wait,
            0,
            &context.warp,
            &context.inst,
            context.lane,
            nullptr,
            context.memory.order().thread(context.warp, context.lane),
            Side::kDevice};
  const CallOutcome outcome = op.handler(call);
  if (outcome == CallOutcome::kDone && op.result != 0) {
    std::uint64_t result = call.result;
    // Results narrower than 32 bits come back widened, as PTX's calling convention has them.
    if (op.result == 'v' && op.element->bytes < 4 && op.element->kind == ElementClass::kSigned) {
      result = static_cast<std::uint64_t>(sign_extend(result, op.element->bytes));
    }
    context.set_result(result);
  }
  return outcome;
}

Fabric::Fabric(const FabricConfig& config) : state_(std::make_unique<State>(config)) {
  for (const auto& [name, op] : operations()) {
    if (!op.on_device) continue;
    vgpu::DeviceCall& call = state_->device_calls[name];
    call.name = name;
    call.granularity = op.granularity;
    call.function = &State::on_device;
    call.self = state_.get();
    call.variant = reinterpret_cast<std::uint64_t>(&op);
  }
}

Fabric::~Fabric() = default;

void Fabric::attach(vgpu::Memory& memory, vgpu::FindingLog& findings) {
  state_->memory = &memory;
  state_->findings = &findings;
  state_->delivery.attach(memory, findings);
}

const vgpu::DeviceCall* Fabric::find(std::string_view name) const {
  const auto found = state_->device_calls.find(name);
  return found == state_->device_calls.end() ? nullptr : &found->second;
}

std::vector<std::string> Fabric::names() const {
  std::vector<std::string> out;
  out.reserve(state_->device_calls.size());
  for (const auto& [name, call] : state_->device_calls) out.push_back(name);
  return out;
}

void Fabric::grid_finished(const vgpu::Grid& /*grid*/) {
  // What its threads have issued stays on its way: only a quiet completes it.
}

void Fabric::block_finished(const vgpu::Block& block) { state_->delivery.block_finished(block); }
std::size_t Fabric::pending() const { return state_->delivery.pending(); }
bool Fabric::deliver(std::uint64_t now, bool force) { return state_->delivery.deliver(now, force); }
void Fabric::released(std::uint64_t base, std::uint64_t bytes, vgpu::AgentId who, const vgpu::Site& where) {
  state_->delivery.released(base, bytes, state_->memory->order().release(who), where);
}

bool Fabric::knows_host_call(std::string_view name) const { return find_host_operation(name) != nullptr; }

CallOutcome Fabric::host_call(HostCall& host) {
  const Operation* op = find_host_operation(host.name);
  if (op == nullptr) throw std::logic_error("no NVSHMEM function " + host.name + " for hosts");
  if (host.arguments.size() < op->arguments.size()) throw std::logic_error(host.name + ": too few arguments");
  host.wait = {};
  const vgpu::AgentId agent = host.agent.value != 0 ? host.agent : state_->memory->order().host(host.pe);
  Call call{*op,
            state_->world,
            state_->delivery,
            *state_->memory,
            *state_->findings,
            host.pe,
            std::span<const std::uint64_t>(host.arguments),
            host.token,
            host.wait,
            0,
            nullptr,
            nullptr,
            0,
            &host.site,
            agent,
            host.on_stream ? Side::kDevice : Side::kHost};
  const CallOutcome outcome = op->handler(call);
  host.result = call.result;
  return outcome;
}

void Fabric::pe_gone(int pe, const std::string& why) {
  state_->world.gone[static_cast<std::size_t>(pe)] = why;
}

}  // namespace echolo::shmem
