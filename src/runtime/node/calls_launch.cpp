// Modules, kernels and launches.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/node/node.hpp"
#include "vgpu/cluster.hpp"

namespace echolo::runtime {
namespace {

// "_Z8ring_sumPKfPf" -> "ring_sum"
std::string readable(const std::string& kernel) {
  int status = 0;
  char* text = abi::__cxa_demangle(kernel.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return kernel;
  std::string out = text;
  std::free(text);
  if (out.rfind("void ", 0) == 0) out.erase(0, 5);
  // Cuts the parameters, not the template arguments or "(anonymous namespace)" before them.
  int depth = 0;
  for (std::size_t i = out.size(); i-- > 0;) {
    if (out[i] == ')') ++depth;
    if (out[i] == '(' && --depth == 0) return i == 0 ? out : out.substr(0, i);
  }
  return out;
}

constexpr std::uint32_t kMaxGridX = 2147483647, kMaxGridYZ = 65535, kMaxBlockXY = 1024, kMaxBlockZ = 64;

}  // namespace

// A form that the virtual node does not know stops the job: a program whose kernel can't be loaded has no
// other way on.
Answer Node::load_module(int pe, HostThread&, wire::Reader in) {
  const std::string name(in.text()), ptx(in.blob());
  if (!in.done()) return Answer::malformed();
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  if (state.modules.size() >= 256) return Answer::fail(2);
  const Result<vgpu::ModuleId> id = machine_->load_module(pe, ptx, name);
  if (!id.ok()) {
    stop("launch_error", id.error().render());
    return Answer::blocked();
  }
  for (const std::string& kernel : machine_->kernel_names(*id)) {
    const auto count = spec_.register_counts.find(kernel);
    if (count != spec_.register_counts.end()) machine_->set_register_count(*id, kernel, count->second);
  }
  const std::uint32_t number = state.next_module++;
  state.modules[number].id = *id;
  wire::Writer out;
  out.u32(number);
  return Answer::of(out);
}

// Waits for the device first: its kernels may still run.
Answer Node::unload_module(int pe, HostThread& thread, wire::Reader in) {
  const std::uint32_t number = in.u32();
  const Module* module = module_of(pe, number);
  if (!in.done() || module == nullptr) return Answer::malformed();
  if (thread.pending.stage == 0) {
    if (const int error = engine_.allow_unsafe(pe, thread.index); error != kOk) return Answer::fail(error);
    thread.pending.wait = engine_.last_of_device(pe);
    thread.pending.stage = 1;
  }
  Answer waited = wait_for(pe, thread, "the device to finish");
  if (waited.kind != Answer::Kind::kReply) return waited;
  const Status unloaded = machine_->unload_module(pe, module->id);
  if (!unloaded.ok()) return Answer::fail(refuse(pe, thread, unloaded.error()));
  pes_[static_cast<std::size_t>(pe)]->modules.erase(number);
  return Answer::ok();
}

Answer Node::kernel_names(int pe, wire::Reader in) {
  const Module* module = module_of(pe, in.u32());
  if (!in.done() || module == nullptr) return Answer::malformed();
  const std::vector<std::string> names = machine_->kernel_names(module->id);
  wire::Writer out;
  out.u32(static_cast<std::uint32_t>(names.size()));
  for (const std::string& name : names) out.text(name);
  return Answer::of(out);
}

// u32 count, (u32 offset, u32 size) each, then u32 x 6: parameter bytes, static shared, local, registers,
// const, threads.
Answer Node::kernel_info(int pe, wire::Reader in) {
  const std::uint32_t number = in.u32();
  const std::string kernel(in.text());
  const Module* module = module_of(pe, number);
  if (!in.done() || module == nullptr) return Answer::malformed();
  const Result<vgpu::KernelInfo> info = machine_->kernel_info(module->id, kernel);
  if (!info.ok()) return Answer::fail(98);
  wire::Writer out;
  out.u32(static_cast<std::uint32_t>(info->param_offsets.size()));
  for (std::size_t i = 0; i < info->param_offsets.size(); ++i)
    out.u32(info->param_offsets[i]).u32(info->param_sizes[i]);
  out.u32(info->param_bytes).u32(info->static_shared).u32(info->local_bytes).u32(info->registers);
  out.u32(info->const_bytes).u32(info->max_threads);
  return Answer::of(out);
}

Answer Node::variable(int pe, wire::Reader in) {
  const std::uint32_t number = in.u32();
  const std::string name(in.text());
  const Module* module = module_of(pe, number);
  if (!in.done() || module == nullptr) return Answer::malformed();
  const auto found = machine_->variable(pe, module->id, name);
  if (!found.ok()) return Answer::fail(13);
  wire::Writer out;
  out.u64(found->first).u64(found->second);
  return Answer::of(out);
}

Answer Node::function_limit(int pe, wire::Reader in) {
  const std::uint32_t number = in.u32();
  const std::string kernel(in.text());
  const std::uint64_t bytes = in.u64();
  Module* module = module_of(pe, number);
  if (!in.done() || module == nullptr) return Answer::malformed();
  if (!machine_->kernel_info(module->id, kernel).ok()) return Answer::fail(98);
  module->dynamic_limits[kernel] = bytes;
  return Answer::ok();
}

Answer Node::occupancy(int pe, wire::Reader in) {
  const std::uint32_t number = in.u32();
  const std::string kernel(in.text());
  const std::uint32_t threads = in.u32();
  const std::uint64_t shared = in.u64();
  const Module* module = module_of(pe, number);
  if (!in.done() || module == nullptr) return Answer::malformed();
  if (threads > 1024 || shared > UINT32_MAX) return Answer::fail(1);
  const Result<int> blocks =
      machine_->blocks_per_sm(module->id, kernel, threads, static_cast<std::uint32_t>(shared));
  if (!blocks.ok()) return Answer::fail(98);
  wire::Writer out;
  out.u32(static_cast<std::uint32_t>(*blocks));
  return Answer::of(out);
}

Answer Node::launch(int pe, HostThread& thread, wire::Reader in) {
  const std::uint32_t number = in.u32();
  auto request = std::make_shared<vgpu::LaunchRequest>();
  request->pe = pe;
  request->kernel = std::string(in.text());
  for (vgpu::Dim3* dim : {&request->grid, &request->block}) {
    dim->x = in.u32();
    dim->y = in.u32();
    dim->z = in.u32();
  }
  const std::uint64_t shared = in.u64();
  const StreamHandle stream = in.u64();
  request->cooperative = in.u8() != 0;
  request->cluster.x = in.u32();
  request->cluster.y = in.u32();
  request->cluster.z = in.u32();
  const std::string_view parameters = in.blob();
  Module* module = module_of(pe, number);
  if (!in.done() || module == nullptr) return Answer::malformed();
  const Result<vgpu::KernelInfo> info = machine_->kernel_info(module->id, request->kernel);
  if (!info.ok()) return Answer::fail(98);
  if (parameters.size() != info->param_bytes) return Answer::malformed();

  const vgpu::Dim3 &grid = request->grid, &block = request->block;
  const auto refused = [&](std::string why) {
    return Answer::fail(refuse(pe, thread, usage_error(std::move(why))));
  };
  const auto text_of = [](const vgpu::Dim3& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kMaxGridX || grid.y > kMaxGridYZ ||
      grid.z > kMaxGridYZ) {
    return refused("cudaErrorInvalidConfiguration: a grid of " + text_of(grid) + " blocks");
  }
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > kMaxBlockXY || block.y > kMaxBlockXY ||
      block.z > kMaxBlockZ || block.count() > 1024) {
    return refused("cudaErrorInvalidConfiguration: a block of " + text_of(block) +
                   " threads; at most 1024 are allowed");
  }
  const vgpu::Dim3& cluster = request->cluster;
  if (cluster.count() > vgpu::kMaxClusterBlocks || cluster.x > 16 || cluster.y > 16 || cluster.z > 16 ||
      (cluster.count() == 0) != (cluster.x == 0 && cluster.y == 0 && cluster.z == 0) ||
      (cluster.count() != 0 &&
       (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0))) {
    return refused("cudaErrorInvalidClusterSize: clusters of " + text_of(cluster) + " blocks in a grid of " +
                   text_of(grid));
  }
  const vgpu::GpuModel& gpu = machine_->config().gpu;
  const auto limit = module->dynamic_limits.find(request->kernel);
  const std::uint64_t usual = static_cast<std::uint64_t>(gpu.shared_per_block);
  const std::uint64_t allowed = limit != module->dynamic_limits.end()
                                    ? std::max(limit->second, std::uint64_t{0})
                                : usual > info->static_shared ? usual - info->static_shared
                                                              : 0;
  const bool fits_usual = shared + info->static_shared <= usual;
  if (shared > allowed && !fits_usual) {
    return refused("cudaErrorInvalidValue: " + std::to_string(shared) +
                   " bytes of dynamic shared memory, allowed are " + std::to_string(allowed) +
                   "; cudaFuncSetAttribute(..., MaxDynamicSharedMemorySize, ...) raises that");
  }
  request->dynamic_shared = static_cast<std::uint32_t>(shared);
  const Result<int> blocks = machine_->blocks_per_sm(
      module->id, request->kernel, static_cast<std::uint32_t>(block.count()), request->dynamic_shared);
  if (!blocks.ok()) return refused(blocks.error().message);
  if (*blocks == 0) {
    return refused("cudaErrorLaunchOutOfResources: a block of " + std::to_string(block.count()) +
                   " threads needs more registers or shared memory than one SM has");
  }
  if (request->cooperative &&
      grid.count() > static_cast<std::uint64_t>(*blocks) * static_cast<std::uint64_t>(gpu.sms)) {
    return refused("cudaErrorCooperativeLaunchTooLarge: " + std::to_string(grid.count()) +
                   " blocks, but only " + std::to_string(*blocks) + " x " + std::to_string(gpu.sms) +
                   " can be resident at once");
  }
  request->module = module->id;
  request->params.assign(parameters.begin(), parameters.end());
  request->where = sites_.token(pe, thread.pending.header.frames);

  Op op = make_op(pe, thread, "kernel " + readable(request->kernel));
  op.attempt = [this, request, id = std::optional<vgpu::LaunchId>()](Op& self) mutable {
    if (!id) {
      vgpu::LaunchRequest now = *request;
      now.call = self.call;
      now.on = self.agent;
      const Result<vgpu::LaunchId> started = machine_->launch(now);
      if (!started.ok()) {
        stop("launch_error", started.error().render());
        return Step::kFault;
      }
      id = *started;
    }
    if (!machine_->finished(*id)) {
      self.waits_for = self.what;
      return Step::kWaiting;
    }
    self.done_ns = machine_->finished_at_ns(*id);
    return Step::kDone;
  };
  return Answer::fail(place(pe, thread, stream, std::move(op), nullptr));
}

}  // namespace echolo::runtime
