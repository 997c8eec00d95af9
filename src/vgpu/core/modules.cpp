// Modules: decoding (once for equal text), variables in a PE's memory, constant pools.
#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "vgpu/core/decode_function.hpp"
#include "vgpu/core/engine.hpp"
#include "vgpu/core/sites.hpp"

namespace echolo::vgpu {
namespace {

void broadcast(std::uint8_t* to, unsigned width, std::uint64_t low, std::uint64_t high) {
  if (width == 1) {
    const std::uint32_t bits = (low & 1U) != 0 ? kAllLanes : 0;
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
  const std::size_t bytes = std::min(width / 8U, 8U);
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) std::memcpy(to + lane * bytes, &low, bytes);
  if (width == 128) {
    for (std::size_t lane = 0; lane < kWarpSize; ++lane) std::memcpy(to + (kWarpSize + lane) * 8, &high, 8);
  }
}

}  // namespace

Result<ModuleId> Machine::State::load(int pe, const std::string& ptx, const std::string& name) {
  const std::string hash = sha256_hex(ptx);
  std::shared_ptr<Program>& program = programs[hash];
  if (program == nullptr) {
    Result<std::shared_ptr<Program>> decoded = decode_program(ptx, name, calls);
    if (!decoded.ok()) {
      programs.erase(hash);
      return decoded.error();
    }
    program = *decoded;
  }
  auto module = std::make_unique<PeModule>();
  module->pe = pe;
  module->name = name;
  module->program = program;
  const ptx::Module& text = *program->module;
  for (const ptx::Variable& variable : text.variables) {
    std::uint64_t address = 0;
    if (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) {
      if (variable.is_extern && variable.size == 0) {
        return error_at_position(text, variable.position,
                                 "variable '" + variable.name + "' is declared but defined nowhere");
      }
      const AllocationKind kind = variable.is_managed                    ? AllocationKind::kManaged
                                  : variable.space == ptx::Space::kConst ? AllocationKind::kConstant
                                                                         : AllocationKind::kGlobal;
      Result<std::uint64_t> placed =
          memory->allocate(pe, std::max<std::uint64_t>(variable.size, 1), std::max(variable.align, 1U), kind,
                           variable_name(variable.name), "", "");
      if (!placed.ok()) return placed.error();
      address = *placed;
    }
    module->addresses.push_back(address);
  }
  const Site site = make_host_site(pe, "load");
  Memory::Accessor who;
  who.site = &site;
  who.pe = pe;
  who.what = "module load";
  for (std::size_t i = 0; i < text.variables.size(); ++i) {
    const ptx::Variable& variable = text.variables[i];
    if (module->addresses[i] == 0 || variable.size == 0) continue;
    std::vector<std::uint8_t> bytes = variable.initial;
    bytes.resize(variable.size);
    for (const ptx::Variable::Relocation& slot : variable.relocations) {
      std::uint64_t value = static_cast<std::uint64_t>(slot.addend);
      if (slot.variable >= 0) {
        value += module->addresses[static_cast<std::size_t>(slot.variable)];
      } else {
        value += function_address(slot.function);
      }
      if (slot.offset + sizeof value > bytes.size()) continue;
      std::memcpy(bytes.data() + slot.offset, &value, sizeof value);
    }
    if (!memory->write(module->addresses[i], bytes.data(), bytes.size(), who)) {
      return usage_error("variable '" + variable.name + "' of " + name + " could not be initialised");
    }
  }
  modules.push_back(std::move(module));
  return static_cast<ModuleId>(modules.size() - 1);
}

Status Machine::State::unload(int pe, ModuleId id) {
  if (id >= modules.size() || modules[id]->pe != pe || !modules[id]->loaded)
    return usage_error("no such module");
  for (const auto& grid : pes[static_cast<std::size_t>(pe)].grids) {
    if (grid->pe_module == modules[id].get()) return usage_error("a kernel of the module is still running");
  }
  PeModule& module = *modules[id];
  for (std::uint64_t& address : module.addresses) {
    if (address == 0) continue;
    if (Status status = memory->release(address); !status.ok()) return status;
    address = 0;
  }
  module.loaded = false;
  module.pools.clear();
  return {};
}

Result<const KernelImage*> Machine::State::entry(ModuleId id, const std::string& kernel) const {
  if (id >= modules.size() || !modules[id]->loaded) return usage_error("no such module");
  const Program& program = *modules[id]->program;
  std::vector<std::string> names;
  for (const auto& image : program.functions) {
    if (image == nullptr || !image->function->is_entry) continue;
    if (image->function->name == kernel) return static_cast<const KernelImage*>(image.get());
    names.push_back(image->function->name);
  }
  return usage_error("no kernel '" + kernel + "' in " + modules[id]->name, did_you_mean(kernel, names));
}

std::shared_ptr<const std::vector<std::uint8_t>> Machine::State::pool_for(PeModule& module,
                                                                          const KernelImage& image) {
  auto& known = module.pools[image.index];
  if (known != nullptr) return known;
  const Program& program = *module.program;
  const SharedLayout& layout = program.layouts.at(image.index);
  auto storage = std::make_shared<std::vector<std::uint8_t>>(program.pool_bytes + 64U);
  const auto base = reinterpret_cast<std::uintptr_t>(storage->data());
  std::uint8_t* pool = storage->data() + ((64 - base % 64) % 64);
  for (std::size_t i = 0; i < program.pool.size(); ++i) {
    const PoolEntry& entry = program.pool[i];
    std::uint64_t low = entry.value[0];
    switch (entry.kind) {
      case PoolEntry::Kind::kImmediate:
        break;
      case PoolEntry::Kind::kGlobal:
        low += module.addresses[static_cast<std::size_t>(entry.index)];
        break;
      case PoolEntry::Kind::kShared:
        if (const auto at = layout.offsets.find(entry.index); at != layout.offsets.end()) low += at->second;
        break;
    }
    broadcast(pool + program.pool_offsets[i], entry.width, low, entry.value[1]);
  }
  known = storage;
  return known;
}

}  // namespace echolo::vgpu
