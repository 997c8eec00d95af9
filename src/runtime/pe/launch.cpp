// Kernel launches, occupancy and function attributes.
#include <algorithm>
#include <cstring>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

int launch(Kernel& kernel, dim3 grid, dim3 block, void** args, std::size_t shared, cudaStream_t stream,
           bool cooperative, const char* name, dim3 cluster) {
  Call call(wire::Op::kLaunch, name);
  call.in.u32(kernel.module).text(kernel.name);
  for (const unsigned n : {grid.x, grid.y, grid.z, block.x, block.y, block.z}) call.in.u32(n);
  call.in.u64(shared).u64(number(stream)).u8(cooperative ? 1 : 0);
  for (const unsigned n : {cluster.x, cluster.y, cluster.z}) call.in.u32(n);
  std::uint8_t* parameters = call.in.room(kernel.parameter_bytes);
  if (kernel.parameter_bytes != 0) std::memset(parameters, 0, kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.offsets.size(); ++i) {
    if (args == nullptr || args[i] == nullptr) return kInvalidValue;
    std::memcpy(parameters + kernel.offsets[i], args[i], kernel.sizes[i]);
  }
  return call.send();
}

namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration>* t_pushed = nullptr;

int launch_function(const void* function, dim3 grid, dim3 block, void** args, std::size_t shared,
                    cudaStream_t stream, bool cooperative, const char* name, dim3 cluster = dim3(0, 0, 0)) {
  int error = kSuccess;
  Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return error;
  return launch(*kernel, grid, block, args, shared, stream, cooperative, name, cluster);
}

int occupancy(int* blocks, const void* function, int threads, std::size_t shared) {
  if (blocks == nullptr || threads <= 0) return kInvalidValue;
  int error = kSuccess;
  Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return error;
  Call call(wire::Op::kOccupancy, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  call.in.u32(kernel->module).text(kernel->name).u32(static_cast<std::uint32_t>(threads)).u64(shared);
  error = call.send();
  if (error == kSuccess) *blocks = static_cast<int>(call.out.u32());
  return error;
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                                CUstream_st* stream) {
  if (t_pushed == nullptr)
    t_pushed = new std::vector<Configuration>;  // NOLINT: kept until the thread's process ends
  t_pushed->push_back({grid, block, shared, stream});
  return 0;
}

ECHOLO_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared,
                                                  void* stream) {
  if (t_pushed == nullptr || t_pushed->empty()) return done(static_cast<int>(cudaErrorMissingConfiguration));
  const Configuration& top = t_pushed->back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  t_pushed->pop_back();
  return cudaSuccess;
}

ECHOLO_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                          std::size_t shared, cudaStream_t stream) {
  if (kernel == nullptr) return done(kInvalidDeviceFunction);
  return done(launch_function(kernel, grid, block, args, shared, stream, false, "kernel launch"));
}

ECHOLO_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                                        std::size_t shared, cudaStream_t stream) {
  return done(launch_function(function, grid, block, args, shared, stream, false, "cudaLaunchKernel"));
}

ECHOLO_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                                   std::size_t shared, cudaStream_t stream) {
  return done(
      launch_function(function, grid, block, args, shared, stream, true, "cudaLaunchCooperativeKernel"));
}

ECHOLO_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                           void** args) {
  if (config == nullptr) return done(kInvalidValue);
  bool cooperative = false;
  dim3 cluster(0, 0, 0);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        break;  // hints: they change time, not results
      case cudaLaunchAttributeCooperative:
        cooperative = attribute.val.cooperative != 0;
        break;
      case cudaLaunchAttributeClusterDimension:
        cluster = dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
        break;
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        break;  // where the blocks of a cluster go
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        break;  // a kernel may begin before the one before it ends; here it begins after, which is allowed
      default:
        return done(unsupported("cudaLaunchKernelExC", "launch attribute " +
                                                           std::to_string(static_cast<int>(attribute.id)) +
                                                           " is not modelled by the virtual node"));
    }
  }
  return done(launch_function(function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
                              config->stream, cooperative, "cudaLaunchKernelExC", cluster));
}

ECHOLO_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return done(kInvalidValue);
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return done(error);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->sharedSizeBytes = kernel->static_shared;
  attributes->constSizeBytes = kernel->const_bytes;
  attributes->localSizeBytes = kernel->local_bytes;
  attributes->maxThreadsPerBlock = static_cast<int>(kernel->max_threads);
  attributes->numRegs = static_cast<int>(kernel->registers);
  attributes->ptxVersion = attributes->binaryVersion = 90;
  const std::uint64_t usual = static_cast<std::uint64_t>(__cudaEcholoHello()->shared_per_block);
  const std::uint64_t left = usual > kernel->static_shared ? usual - kernel->static_shared : 0;
  attributes->maxDynamicSharedSizeBytes =
      static_cast<int>(kernel->dynamic_limit != 0 ? kernel->dynamic_limit : left);
  attributes->preferredShmemCarveout = -1;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  int error = kSuccess;
  Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return done(error);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout ||
      attribute == cudaFuncAttributeClusterSchedulingPolicyPreference ||
      attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
    return done(kSuccess);  // hints; clusters of up to 16 blocks run anyway
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    return done(unsupported(
        "cudaFuncSetAttribute",
        "attribute " + std::to_string(static_cast<int>(attribute)) + " is not modelled by the virtual node"));
  }
  const auto most = static_cast<std::int64_t>(__cudaEcholoHello()->shared_per_block_optin) -
                    static_cast<std::int64_t>(kernel->static_shared);
  if (value < 0 || value > most) return done(kInvalidValue);
  Call call(wire::Op::kFunctionLimit, "cudaFuncSetAttribute");
  call.in.u32(kernel->module).text(kernel->name).u64(static_cast<std::uint64_t>(value));
  error = call.send();
  if (error == kSuccess) kernel->dynamic_limit = static_cast<std::uint64_t>(value);
  return done(error);
}

ECHOLO_API cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  int error = kSuccess;
  find_kernel(function, &error);
  return done(error);  // a hint
}

ECHOLO_API cudaError_t cudaFuncGetName(const char** name, const void* function) {
  if (name == nullptr) return done(kInvalidValue);
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  if (kernel != nullptr) *name = kernel->name.c_str();
  return done(error);
}

ECHOLO_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                     int threads, std::size_t shared) {
  return done(occupancy(blocks, function, threads, shared));
}

ECHOLO_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                              const void* function,
                                                                              int threads, std::size_t shared,
                                                                              unsigned) {
  return done(occupancy(blocks, function, threads, shared));
}

ECHOLO_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function,
                                                                 int blocks, int) {
  if (bytes == nullptr || blocks <= 0) return done(kInvalidValue);
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return done(error);
  const wire::Hello& gpu = *__cudaEcholoHello();
  const std::int64_t share = gpu.shared_per_sm / blocks - gpu.reserved_shared_per_block;
  const std::int64_t most = std::min<std::int64_t>(share, gpu.shared_per_block_optin);
  *bytes = static_cast<std::size_t>(
      std::max<std::int64_t>(most - static_cast<std::int64_t>(kernel->static_shared), 0));
  return done(kSuccess);
}

// Any SM can hold any block of a cluster here, so that as many clusters fit as blocks do.
ECHOLO_API cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                      const cudaLaunchConfig_t* config) {
  if (clusters == nullptr || config == nullptr) return done(kInvalidValue);
  std::uint64_t size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    const auto& dim = config->attrs[i].val.clusterDim;
    size = std::uint64_t{dim.x} * dim.y * dim.z;
  }
  if (size == 0 || size > 16) return done(kInvalidValue);
  int blocks = 0;
  const std::uint64_t threads = std::uint64_t{config->blockDim.x} * config->blockDim.y * config->blockDim.z;
  const int error = occupancy(&blocks, function, static_cast<int>(threads), config->dynamicSmemBytes);
  if (error != kSuccess) return done(error);
  *clusters = blocks * __cudaEcholoHello()->sms / static_cast<int>(size);
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                            const cudaLaunchConfig_t* config) {
  if (size == nullptr || config == nullptr) return done(kInvalidValue);
  int error = kSuccess;
  find_kernel(function, &error);
  *size = 8;
  return done(error);
}
