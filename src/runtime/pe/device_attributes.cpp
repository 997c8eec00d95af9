// Attributes of the device (CUDA runtime API, "Device Management", cudaDeviceAttr; the driver API's
// CUdevice_attribute has the same numbers). What the virtual node does not offer is answered with 0.
#include <cuda.h>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {
namespace {

bool of_shape(int attribute, const cudaDeviceProp& p, int* value) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = p.maxThreadsPerBlock, true;
    case cudaDevAttrMaxBlockDimX:
      return *value = p.maxThreadsDim[0], true;
    case cudaDevAttrMaxBlockDimY:
      return *value = p.maxThreadsDim[1], true;
    case cudaDevAttrMaxBlockDimZ:
      return *value = p.maxThreadsDim[2], true;
    case cudaDevAttrMaxGridDimX:
      return *value = p.maxGridSize[0], true;
    case cudaDevAttrMaxGridDimY:
      return *value = p.maxGridSize[1], true;
    case cudaDevAttrMaxGridDimZ:
      return *value = p.maxGridSize[2], true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = static_cast<int>(p.sharedMemPerBlock), true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return *value = static_cast<int>(p.sharedMemPerMultiprocessor), true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = static_cast<int>(p.sharedMemPerBlockOptin), true;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return *value = static_cast<int>(p.reservedSharedMemPerBlock), true;
    case cudaDevAttrTotalConstantMemory:
      return *value = static_cast<int>(p.totalConstMem), true;
    case cudaDevAttrWarpSize:
      return *value = p.warpSize, true;
    case cudaDevAttrMaxPitch:
      return *value = static_cast<int>(p.memPitch), true;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return *value = p.regsPerMultiprocessor, true;
    case cudaDevAttrClockRate:
      return *value = __cudaEcholoHello()->clock_khz, true;
    case cudaDevAttrMultiProcessorCount:
      return *value = p.multiProcessorCount, true;
    case cudaDevAttrTextureAlignment:
      return *value = static_cast<int>(p.textureAlignment), true;
    case cudaDevAttrTexturePitchAlignment:
      return *value = static_cast<int>(p.texturePitchAlignment), true;
    case cudaDevAttrPciBusId:
      return *value = p.pciBusID, true;
    case cudaDevAttrMemoryClockRate:
      return *value = 3201000, true;
    case cudaDevAttrGlobalMemoryBusWidth:
      return *value = p.memoryBusWidth, true;
    case cudaDevAttrL2CacheSize:
      return *value = p.l2CacheSize, true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return *value = p.maxThreadsPerMultiProcessor, true;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return *value = p.maxBlocksPerMultiProcessor, true;
    case cudaDevAttrAsyncEngineCount:
      return *value = p.asyncEngineCount, true;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = p.major, true;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = p.minor, true;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      return *value = 2, true;
    case cudaDevAttrComputeMode:
      return *value = cudaComputeModeDefault, true;
    default:
      return false;
  }
}

bool is_offered(int attribute) {
  switch (attribute) {
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrClusterLaunch:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrIpcEventSupport:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      return true;
    default:
      return false;
  }
}

bool is_absent(int attribute) {
  switch (attribute) {
    case cudaDevAttrIntegrated:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrTccDriver:
    case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrMultiGpuBoardGroupID:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrDirectManagedMemAccessFromHost:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCanFlushRemoteWrites:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMaxPersistingL2CacheSize:
    case cudaDevAttrMaxAccessPolicyWindowSize:
    case cudaDevAttrSparseCudaArraySupported:
    case cudaDevAttrHostRegisterReadOnlySupported:
    case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrDeferredMappingCudaArraySupported:
    case cudaDevAttrMpsEnabled:
    case cudaDevAttrHostNumaId:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      return true;
    default:
      return false;
  }
}

}  // namespace

int device_attribute(const char* name, int attribute, int device, int* value) {
  if (value == nullptr) return kInvalidValue;
  cudaDeviceProp p;
  if (device < 0 || device >= device_count()) return kInvalidDevice;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  if (of_shape(attribute, p, value)) return kSuccess;
  if (!is_offered(attribute) && !is_absent(attribute)) {
    return unsupported(name,
                       "attribute " + std::to_string(attribute) + " is not modelled by the virtual node");
  }
  *value = is_offered(attribute) ? 1 : 0;
  return kSuccess;
}

}  // namespace echolo::runtime::pe
