// Decoding of a module: every function, then what depends on who calls whom (shared memory, stack).
#include <algorithm>
#include <set>

#include "base/hash.hpp"
#include "vgpu/core/decode_function.hpp"
#include "vgpu/core/image.hpp"

namespace echolo::vgpu {
namespace {

// Local memory that a thread gets for calls whose depth can't be known (recursion, function pointers); grown
// when used up, see calls.cpp.
constexpr std::uint32_t kUnknownDepthBytes = 4096;

std::vector<std::int32_t> address_taken(const Program& program) {
  std::set<std::int32_t> taken;
  for (const PoolEntry& entry : program.pool) {
    if (entry.kind != PoolEntry::Kind::kImmediate || entry.value[0] < kCodeWindow) continue;
    const std::uint64_t index = (entry.value[0] - kCodeWindow) / 16;
    if (index >= 1 && index <= program.functions.size()) taken.insert(static_cast<std::int32_t>(index - 1));
  }
  for (const ptx::Variable& variable : program.module->variables) {
    for (const auto& relocation : variable.relocations) {
      if (relocation.function >= 0) taken.insert(relocation.function);
    }
  }
  std::vector<std::int32_t> defined;
  for (const std::int32_t index : taken) {
    if (program.functions[static_cast<std::size_t>(index)] != nullptr) defined.push_back(index);
  }
  return defined;
}

struct Reach {
  std::set<std::int32_t> functions;
  bool indirect = false;
};

void reach_from(const Program& program, const std::vector<std::int32_t>& taken, std::int32_t start,
                Reach& reach) {
  std::vector<std::int32_t> open = {start};
  while (!open.empty()) {
    const std::int32_t index = open.back();
    open.pop_back();
    const KernelImage* image = program.functions[static_cast<std::size_t>(index)].get();
    if (image == nullptr || !reach.functions.insert(index).second) continue;
    open.insert(open.end(), image->callees.begin(), image->callees.end());
    if (image->calls_indirectly) {
      reach.indirect = true;
      open.insert(open.end(), taken.begin(), taken.end());
    }
  }
}

// The deepest chain of frames from `index`; sets `unbounded` where calls are recursive.
std::uint64_t deepest(const Program& program, std::int32_t index,
                      std::map<std::int32_t, std::uint64_t>& known, std::set<std::int32_t>& open,
                      bool& unbounded) {
  const KernelImage* image = program.functions[static_cast<std::size_t>(index)].get();
  if (image == nullptr) return 0;
  if (const auto at = known.find(index); at != known.end()) return at->second;
  if (!open.insert(index).second) {
    unbounded = true;
    return 0;
  }
  std::uint64_t below = 0;
  for (const std::int32_t callee : image->callees) {
    below = std::max(below, deepest(program, callee, known, open, unbounded));
  }
  if (image->calls_indirectly) unbounded = true;
  open.erase(index);
  return known[index] = image->local_bytes + below;
}

void lay_out_entry(Program& program, const std::vector<std::int32_t>& taken, const KernelImage& entry) {
  Reach reach;
  reach_from(program, taken, entry.index, reach);
  std::set<std::int32_t> keys;
  for (const std::int32_t function : reach.functions) {
    const auto& used = program.functions[static_cast<std::size_t>(function)]->shared_variables;
    keys.insert(used.begin(), used.end());
  }
  SharedLayout layout;
  std::uint64_t at = 0;
  std::uint32_t dynamic_align = 16;
  for (const std::int32_t key : keys) {
    const SharedVariable& variable = program.shared[static_cast<std::size_t>(key)];
    if (variable.dynamic) {
      dynamic_align = std::max(dynamic_align, variable.align);
      continue;
    }
    at = (at + variable.align - 1) / variable.align * variable.align;
    layout.offsets[key] = static_cast<std::uint32_t>(at);
    at += variable.size;
  }
  layout.static_bytes = static_cast<std::uint32_t>(at);
  layout.dynamic_offset =
      static_cast<std::uint32_t>((at + dynamic_align - 1) / dynamic_align * dynamic_align);
  for (const std::int32_t key : keys) {
    if (program.shared[static_cast<std::size_t>(key)].dynamic) layout.offsets[key] = layout.dynamic_offset;
  }
  program.layouts[entry.index] = std::move(layout);

  std::map<std::int32_t, std::uint64_t> known;
  std::set<std::int32_t> open;
  bool unbounded = false;
  std::uint64_t stack = deepest(program, entry.index, known, open, unbounded);
  if (unbounded) stack += kUnknownDepthBytes;
  program.stack_bytes[entry.index] = static_cast<std::uint32_t>((stack + 15) / 16 * 16);

  std::uint32_t const_bytes = 0;
  for (const ptx::Variable& variable : program.module->variables) {
    if (variable.space == ptx::Space::kConst) const_bytes += static_cast<std::uint32_t>(variable.size);
  }
  program.const_bytes[entry.index] = const_bytes;
}

}  // namespace

Result<std::shared_ptr<Program>> decode_program(const std::string& ptx, const std::string& name,
                                                const DeviceCallTable* calls) {
  Result<ptx::Module> parsed = ptx::parse(ptx, name);
  if (!parsed.ok()) return parsed.error();
  auto program = std::make_shared<Program>();
  program->hash = sha256_hex(ptx);
  program->module = std::make_unique<ptx::Module>(std::move(*parsed));
  const ptx::Module& module = *program->module;
  PoolBuilder pool(*program);
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    program->functions.push_back(nullptr);
    if (!module.functions[i].is_defined) continue;
    auto image = std::make_unique<KernelImage>();
    image->module = &module;
    image->function = &module.functions[i];
    image->index = static_cast<std::int32_t>(i);
    if (Status status = decode_function(module, calls, pool, *image); !status.ok()) return status.error();
    program->functions.back() = std::move(image);
  }
  const std::vector<std::int32_t> taken = address_taken(*program);
  for (const auto& image : program->functions) {
    if (image != nullptr && image->function->is_entry) lay_out_entry(*program, taken, *image);
  }
  return program;
}

}  // namespace echolo::vgpu
