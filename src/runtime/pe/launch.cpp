// Kernel launches, occupancy and function attributes.
#include <algorithm>
#include <cstring>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

int pack_arguments(const Kernel& kernel, void** args, std::vector<std::uint8_t>* block) {
  block->assign(kernel.parameter_bytes, 0);
  for (std::size_t i = 0; i < kernel.offsets.size(); ++i) {
    if (args == nullptr || args[i] == nullptr) return kInvalidValue;
    std::memcpy(block->data() + kernel.offsets[i], args[i], kernel.sizes[i]);
  }
  return kSuccess;
}

void write_launch(wire::Writer& out, const Kernel& kernel, const LaunchShape& shape,
                  const std::vector<std::uint8_t>& block) {
  out.u32(kernel.module).text(kernel.name);
  for (const dim3& dim : {shape.grid, shape.block}) out.u32(dim.x).u32(dim.y).u32(dim.z);
  out.u64(shape.shared).u64(number(shape.stream)).u8(shape.cooperative ? 1 : 0);
  out.u32(shape.cluster.x).u32(shape.cluster.y).u32(shape.cluster.z);
  out.blob(block.data(), block.size());
}

int launch(const char* name, const Kernel& kernel, const LaunchShape& shape, void** args) {
  std::vector<std::uint8_t> block;
  if (const int error = pack_arguments(kernel, args, &block); error != kSuccess) return error;
  Call call(wire::Op::kLaunch, name);
  write_launch(call.in, kernel, shape, block);
  return call.send();
}

int read_attributes(const char* name, const cudaLaunchAttribute* attributes, unsigned n, LaunchShape* shape) {
  for (unsigned i = 0; i < n; ++i) {
    const cudaLaunchAttribute& attribute = attributes[i];
    switch (attribute.id) {
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        break;  // hints: they change time, not results
      case cudaLaunchAttributeCooperative:
        shape->cooperative = attribute.val.cooperative != 0;
        break;
      case cudaLaunchAttributeClusterDimension:
        shape->cluster =
            dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
        break;
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        break;  // where the blocks of a cluster go
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        break;  // a kernel may begin before the one before it ends; here it begins after, which is allowed
      default:
        return unsupported(name, "launch attribute " + std::to_string(static_cast<int>(attribute.id)) +
                                     " is not modelled by the virtual node");
    }
  }
  return kSuccess;
}

int occupancy(const char* name, const Kernel& kernel, int threads, std::size_t shared, int* blocks) {
  if (blocks == nullptr || threads <= 0) return kInvalidValue;
  Call call(wire::Op::kOccupancy, name);
  call.in.u32(kernel.module).text(kernel.name).u32(static_cast<std::uint32_t>(threads)).u64(shared);
  const int error = call.send();
  if (error == kSuccess) *blocks = static_cast<int>(call.out.u32());
  return error;
}

int available_shared(const Kernel& kernel, int blocks, std::size_t* bytes) {
  if (bytes == nullptr || blocks <= 0) return kInvalidValue;
  const wire::Hello& gpu = *__cudaEcholoHello();
  const std::int64_t share = gpu.shared_per_sm / blocks - gpu.reserved_shared_per_block;
  const std::int64_t most = std::min<std::int64_t>(share, gpu.shared_per_block_optin);
  *bytes = static_cast<std::size_t>(
      std::max<std::int64_t>(most - static_cast<std::int64_t>(kernel.static_shared), 0));
  return kSuccess;
}

// Any SM can hold any block of a cluster here, so that as many clusters fit as blocks do.
int active_clusters(const char* name, const Kernel& kernel, const LaunchShape& shape, int* clusters) {
  const std::uint64_t asked = std::uint64_t{shape.cluster.x} * shape.cluster.y * shape.cluster.z;
  const std::uint64_t size = std::max<std::uint64_t>(asked, 1);
  if (clusters == nullptr || size > 16) return kInvalidValue;
  int blocks = 0;
  const std::uint64_t threads = std::uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  if (threads == 0 || threads > 1024) return kInvalidValue;
  const int error = occupancy(name, kernel, static_cast<int>(threads), shape.shared, &blocks);
  if (error == kSuccess) *clusters = blocks * __cudaEcholoHello()->sms / static_cast<int>(size);
  return error;
}

// The numbers of cudaFuncAttribute and CUfunction_attribute agree.
int set_function_attribute(const char* name, Kernel& kernel, int attribute, int value) {
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout ||
      attribute == cudaFuncAttributeClusterSchedulingPolicyPreference ||
      attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
    return kSuccess;  // hints; clusters of up to 16 blocks run anyway
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    return unsupported(
        name, "attribute " + std::to_string(attribute) + " can't be set on kernels of the virtual node");
  }
  const auto most = static_cast<std::int64_t>(__cudaEcholoHello()->shared_per_block_optin) -
                    static_cast<std::int64_t>(kernel.static_shared);
  if (value < 0 || value > most) return kInvalidValue;
  Call call(wire::Op::kFunctionLimit, name);
  call.in.u32(kernel.module).text(kernel.name).u64(static_cast<std::uint64_t>(value));
  const int error = call.send();
  if (error == kSuccess) kernel.dynamic_limit = static_cast<std::uint64_t>(value);
  return error;
}

namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration>* t_pushed = nullptr;

int launch_function(const char* name, const void* function, const LaunchShape& shape, void** args) {
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  return kernel == nullptr ? error : launch(name, *kernel, shape, args);
}

int occupancy_of(int* blocks, const void* function, int threads, std::size_t shared) {
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return error;
  return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessor", *kernel, threads, shared, blocks);
}

LaunchShape shape_of(const cudaLaunchConfig_t& config) {
  LaunchShape shape;
  shape.grid = config.gridDim;
  shape.block = config.blockDim;
  shape.shared = config.dynamicSmemBytes;
  shape.stream = config.stream;
  return shape;
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
  return done(launch_function("kernel launch", kernel, {grid, block, shared, stream}, args));
}

ECHOLO_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                                        std::size_t shared, cudaStream_t stream) {
  return done(launch_function("cudaLaunchKernel", function, {grid, block, shared, stream}, args));
}

ECHOLO_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                                   std::size_t shared, cudaStream_t stream) {
  return done(
      launch_function("cudaLaunchCooperativeKernel", function, {grid, block, shared, stream, true}, args));
}

ECHOLO_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                           void** args) {
  if (config == nullptr) return done(kInvalidValue);
  LaunchShape shape = shape_of(*config);
  const char* const name = "cudaLaunchKernelExC";
  if (const int error = read_attributes(name, config->attrs, config->numAttrs, &shape); error != kSuccess)
    return done(error);
  return done(launch_function(name, function, shape, args));
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
  return done(set_function_attribute("cudaFuncSetAttribute", *kernel, attribute, value));
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
  return done(occupancy_of(blocks, function, threads, shared));
}

ECHOLO_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                              const void* function,
                                                                              int threads, std::size_t shared,
                                                                              unsigned) {
  return done(occupancy_of(blocks, function, threads, shared));
}

ECHOLO_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function,
                                                                 int blocks, int) {
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  return done(kernel == nullptr ? error : available_shared(*kernel, blocks, bytes));
}

ECHOLO_API cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                      const cudaLaunchConfig_t* config) {
  if (config == nullptr) return done(kInvalidValue);
  const char* const name = "cudaOccupancyMaxActiveClusters";
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return done(error);
  LaunchShape shape = shape_of(*config);
  error = read_attributes(name, config->attrs, config->numAttrs, &shape);
  return done(error != kSuccess ? error : active_clusters(name, *kernel, shape, clusters));
}

ECHOLO_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                            const cudaLaunchConfig_t* config) {
  if (size == nullptr || config == nullptr) return done(kInvalidValue);
  int error = kSuccess;
  find_kernel(function, &error);
  *size = 8;
  return done(error);
}
