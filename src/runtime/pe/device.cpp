// Devices: each PE sees one, an H200 as the node models it.
#include <cstdio>
#include <cstring>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

// Any process may use device 0, and the device whose number is its rank where a program counts on one device
// a PE.
int device_count() {
  const wire::Hello* hello = __cudaEcholoHello();
  return hello == nullptr ? 0 : hello->n_pes;
}

int memory_info(const char* name, std::size_t* free, std::size_t* total) {
  if (free == nullptr || total == nullptr) return kInvalidValue;
  Call call(wire::Op::kMemoryInfo, name);
  const int error = call.send();
  *free = call.out.u64();
  *total = call.out.u64();
  return error;
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kRuntimeVersion = 13020;

thread_local int t_device = 0;
bool valid_device(int device) { return device >= 0 && device < device_count(); }

}  // namespace

ECHOLO_API cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return done(kInvalidValue);
  *count = device_count();
  return done(*count > 0 ? kSuccess : static_cast<int>(cudaErrorNoDevice));
}

// The node gives each process its own GPU whatever number it asks for; the number is remembered and reported
// back.
ECHOLO_API cudaError_t cudaSetDevice(int device) {
  if (!valid_device(device)) return done(kInvalidDevice);
  t_device = device;
  return done(ready());
}

ECHOLO_API cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return done(valid_device(device) ? ready() : kInvalidDevice);
}

ECHOLO_API cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return done(kInvalidValue);
  *device = t_device;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (p == nullptr) return done(kInvalidValue);
  if (!valid_device(device)) return done(kInvalidDevice);
  const wire::Hello& gpu = *__cudaEcholoHello();
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "%s", gpu.device_name);
  p->totalGlobalMem = gpu.device_bytes;
  p->sharedMemPerBlock = static_cast<std::size_t>(gpu.shared_per_block);
  p->sharedMemPerBlockOptin = static_cast<std::size_t>(gpu.shared_per_block_optin);
  p->sharedMemPerMultiprocessor = static_cast<std::size_t>(gpu.shared_per_sm);
  p->reservedSharedMemPerBlock = static_cast<std::size_t>(gpu.reserved_shared_per_block);
  p->regsPerBlock = p->regsPerMultiprocessor = gpu.registers_per_sm;
  p->warpSize = 32;
  p->memPitch = 2147483647;
  p->maxThreadsPerBlock = gpu.max_threads_per_block;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->major = 9;
  p->textureAlignment = 512;
  p->texturePitchAlignment = 32;
  p->multiProcessorCount = gpu.sms;
  p->canMapHostMemory = p->concurrentKernels = p->ECCEnabled = p->unifiedAddressing = 1;
  p->asyncEngineCount = 3;
  p->memoryBusWidth = 6144;
  p->l2CacheSize = 60 << 20;
  p->maxThreadsPerMultiProcessor = gpu.max_threads_per_sm;
  p->maxBlocksPerMultiProcessor = gpu.max_blocks_per_sm;
  p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
  p->managedMemory = p->concurrentManagedAccess = p->computePreemptionSupported = p->cooperativeLaunch = 1;
  p->memoryPoolsSupported = 1;
  p->pciBusID = gpu.pe;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return done(device_attribute("cudaDeviceGetAttribute", attribute, device, value));
}

ECHOLO_API cudaError_t cudaDeviceSynchronize() {
  if (const int error = ready(); error != kSuccess) return done(error);
  Call call(wire::Op::kDeviceSync, "cudaDeviceSynchronize");
  return done(call.send());
}

// Waits for the device. Freeing everything under the feet of other threads is not modelled.
ECHOLO_API cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

ECHOLO_API cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return done(memory_info("cudaMemGetInfo", free, total));
}

ECHOLO_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return done(kInvalidValue);
  if (!valid_device(device) || !valid_device(peer)) return done(kInvalidDevice);
  *can = device != peer && __cudaEcholoHello()->peers_reachable != 0 ? 1 : 0;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return done(unsupported("cudaDeviceEnablePeerAccess",
                          "each PE is a process with one GPU; reach peers through NVSHMEM's symmetric heap"));
}

ECHOLO_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaDeviceGetPCIBusId(char* id, int n, int device) {
  if (id == nullptr || n < 13) return done(kInvalidValue);
  if (!valid_device(device)) return done(kInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(n), "0000:%02X:00.0", static_cast<unsigned>(device) & 0xffU);
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaSetDeviceFlags(unsigned) {
  return done(kSuccess);
}  // how to wait: of no effect here
ECHOLO_API cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return done(kInvalidValue);
  *flags = cudaDeviceScheduleAuto;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return done(kInvalidValue);
  *version = kRuntimeVersion;
  return done(kSuccess);
}
ECHOLO_API cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
