// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// Memory is unmapped before the kernel that was launched on it has run.
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void fill(int* p) { p[threadIdx.x] = 1; }  // <-- out-of-bounds

int main() {
  cudaSetDevice(0);
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const std::size_t size = 2 << 20;
  CUdeviceptr base;
  CUmemGenericAllocationHandle handle;
  CUmemAccessDesc access = {};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  cuMemAddressReserve(&base, size, 0, 0, 0);
  cuMemCreate(&handle, size, &prop, 0);
  cuMemMap(base, size, 0, handle, 0);
  cuMemSetAccess(base, size, &access, 1);
  fill<<<1, 32>>>(reinterpret_cast<int*>(base));
  cuMemUnmap(base, size);
  cuCtxSynchronize();
  cuMemRelease(handle);
  cuMemAddressFree(base, size);
  return 0;
}
