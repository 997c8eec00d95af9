#include "vgpu/core/sites.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "vgpu/core/warp.hpp"

namespace echolo::vgpu {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }  // NOLINT: what __cxa_demangle returns is malloc'ed
};

// Position of `source`, or of the nearest instruction before it that has one: the compiler leaves some
// without a line.
std::int32_t position_of(const ptx::Module& module, const ptx::Function& function,
                         const ptx::Instruction* source) {
  if (source == nullptr || function.body.empty()) return function.position;
  const ptx::Instruction* first = function.body.data();
  if (source < first || source >= first + function.body.size()) return source->position;
  for (const ptx::Instruction* at = source; at >= first; --at) {
    if (at->position >= 0 && module.positions[static_cast<std::size_t>(at->position)].line > 0)
      return at->position;
  }
  return function.position;
}

// As installed, and where the judge's sandbox shows it.
bool is_toolkit_file(const std::string& file) {
  return file.find("/nvidia/cu13/") != std::string::npos || file.starts_with("/echolo/cuda/") ||
         file.find("/include/nvshmem/") != std::string::npos;
}

Frame to_frame(const ptx::Module& module, const ptx::Position& at, const std::string& fallback) {
  Frame frame;
  frame.file = module.files[static_cast<std::size_t>(at.file)];
  frame.line = at.line;
  frame.column = at.column;
  frame.function = readable_name(
      at.function >= 0 ? module.function_names[static_cast<std::size_t>(at.function)] : fallback);
  return frame;
}

// The function that runs `inst`: of the running group, or of the group whose code holds it.
const ptx::Function& function_of(const CoreWarp& warp, const Inst& inst) {
  for (const Group& group : warp.groups) {
    const auto& code = group.frame->image->code;
    if (!code.empty() && &inst >= code.data() && &inst < code.data() + code.size())
      return *group.frame->image->function;
  }
  return *warp.block->grid->kernel;
}

}  // namespace

std::string readable_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, Free> demangled(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
  std::string name = status == 0 && demangled != nullptr ? demangled.get() : symbol;
  // The parameter list is the last parenthesis; only a qualifier may follow it.
  const std::size_t close = name.rfind(')');
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  if (close != std::string::npos && name.find("::", close) == std::string::npos) {
    int open_parentheses = 0;
    for (std::size_t i = close + 1; i-- > 0;) {
      if (name[i] == ')') ++open_parentheses;
      if (name[i] == '(' && --open_parentheses == 0) {
        if (i > 0 && name.compare(i, kAnonymous.size(), kAnonymous) != 0) name.resize(i);
        break;
      }
    }
  }
  // A template's name comes with its return type in front.
  int depth = 0;
  std::size_t space = std::string::npos;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0) space = i;
  }
  if (status == 0 && space != std::string::npos && name.find("operator") == std::string::npos)
    name.erase(0, space + 1);
  return name;
}

std::string variable_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, Free> demangled(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
  std::string name = status == 0 && demangled != nullptr ? demangled.get() : symbol;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 1;) {
    if (name[i] == ')' || name[i] == '>') ++depth;
    if (name[i] == '(' || name[i] == '<') --depth;
    if (depth == 0 && name[i] == ':' && name[i - 1] == ':') return name.substr(i + 1);
  }
  return name;
}

Frame frame_of(const ptx::Module& module, const ptx::Function& function, const ptx::Instruction* source,
               std::vector<Frame>* inlined_at) {
  std::int32_t position = position_of(module, function, source);
  Frame frame;
  if (position < 0) {
    frame.function = readable_name(function.name);
    return frame;
  }
  const ptx::Position* at = &module.positions[static_cast<std::size_t>(position)];
  // Code of the toolkit's headers (the body of __syncwarp, of a cooperative group's sync) stands for the call
  // of it.
  while (at->inlined_at >= 0 && is_toolkit_file(module.files[static_cast<std::size_t>(at->file)])) {
    at = &module.positions[static_cast<std::size_t>(at->inlined_at)];
  }
  frame = to_frame(module, *at, function.name);
  while (inlined_at != nullptr && at->inlined_at >= 0) {
    at = &module.positions[static_cast<std::size_t>(at->inlined_at)];
    inlined_at->push_back(to_frame(module, *at, function.name));
  }
  return frame;
}

int line_of(const ptx::Module& module, const ptx::Instruction& source) {
  return source.position >= 0 ? module.positions[static_cast<std::size_t>(source.position)].line : 0;
}

Dim3 thread_index(const Warp& warp, int lane) {
  const Dim3& dim = warp.block->grid->block_dim;
  const std::uint32_t linear = warp.index_in_block * kWarpSize + static_cast<std::uint32_t>(lane);
  return {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
}

Site make_site(const Warp& warp, int lane, const Inst& inst, std::string role) {
  const Grid& grid = *warp.block->grid;
  Site site;
  site.role = std::move(role);
  site.pe = grid.pe;
  site.block = warp.block->index;
  site.thread = thread_index(warp, lane);
  site.call = grid.call;
  site.kernel = readable_name(grid.kernel->name);
  // Every warp of the machine is a CoreWarp; tests of memory functions make plain ones, which have no groups.
  const auto* core = grid.machine != nullptr ? static_cast<const CoreWarp*>(&warp) : nullptr;
  const ptx::Function& function = core != nullptr ? function_of(*core, inst) : *grid.kernel;
  site.where = frame_of(*grid.module, function, inst.source, &site.inlined_at);
  return site;
}

Site make_host_site(int pe, std::string role) {
  Site site;
  site.role = std::move(role);
  site.pe = pe;
  site.on_device = false;
  return site;
}

}  // namespace echolo::vgpu
