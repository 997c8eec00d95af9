// echolo-test: mode=sanitize n=1
// expect: correct
// A vector that grows in place: addresses are reserved once, memory is mapped piece by piece; a piece that is taken away
// and mapped elsewhere keeps what it held.
#include <cuda.h>

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      return 1;                                           \
    }                                                     \
  } while (0)
#define OK(call) CHECK((call) == 0)

__global__ void fill(int* p, unsigned n, int v) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] = v;
}
// Reads across the seam between two pieces.
__global__ void sum(long long* out, const int* p, unsigned n) {
  long long total = 0;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) total += p[i];
  atomicAdd(reinterpret_cast<unsigned long long*>(out), static_cast<unsigned long long>(total));
}

int main() {
  cudaSetDevice(0);
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  std::size_t grain = 0;
  OK(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(grain == 2u << 20);
  CUdeviceptr base;
  OK(cuMemAddressReserve(&base, 4 * grain, 0, 0, 0));
  CHECK(base % grain == 0);
  CUmemGenericAllocationHandle first, second;
  OK(cuMemCreate(&first, grain, &prop, 0));
  OK(cuMemCreate(&second, grain, &prop, 0));
  CUmemAccessDesc access = {};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cuMemMap(base, grain, 0, first, 0));
  CHECK(cuMemMap(base, grain, 0, second, 0) != CUDA_SUCCESS);
  unsigned long long flags = 9;
  OK(cuMemGetAccess(&flags, &prop.location, base));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  OK(cuMemSetAccess(base, grain, &access, 1));
  OK(cuMemGetAccess(&flags, &prop.location, base));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  int* p = reinterpret_cast<int*>(base);
  const unsigned n = static_cast<unsigned>(grain / sizeof(int));
  fill<<<8, 256>>>(p, n, 1);
  OK(cuMemMap(base + grain, grain, 0, second, 0));
  OK(cuMemSetAccess(base + grain, grain, &access, 1));
  fill<<<8, 256>>>(p + n, n, 2);
  long long *out, total = 0;
  OK(cudaMalloc(&out, sizeof *out));
  OK(cudaMemset(out, 0, sizeof *out));
  sum<<<1, 256>>>(out, p + n - 1000, 2000);
  OK(cudaMemcpy(&total, out, sizeof total, cudaMemcpyDeviceToHost));
  CHECK(total == 3000);
  // A copy over the seam too.
  std::vector<int> back(200);
  OK(cudaMemcpy(back.data(), p + n - 100, 800, cudaMemcpyDeviceToHost));
  CHECK(back[99] == 1 && back[100] == 2);
  CHECK(cudaFree(p) != cudaSuccess);
  cudaGetLastError();

  CUmemGenericAllocationHandle again;
  OK(cuMemRetainAllocationHandle(&again, p + n));
  CHECK(again == second);
  OK(cuMemRelease(again));
  OK(cuCtxSynchronize());
  OK(cuMemUnmap(base + grain, grain));
  OK(cuMemMap(base + 3 * grain, grain, 0, second, 0));
  OK(cuMemSetAccess(base + 3 * grain, grain, &access, 1));
  OK(cudaMemcpy(back.data(), p + 3 * n, 800, cudaMemcpyDeviceToHost));
  CHECK(back[0] == 2 && back[199] == 2);
  CHECK(cuMemAddressFree(base, 4 * grain) != CUDA_SUCCESS);  // still mapped
  OK(cuMemUnmap(base + 3 * grain, grain));
  OK(cuMemUnmap(base, grain));
  OK(cuMemRelease(second));
  OK(cuMemRelease(first));
  OK(cuMemAddressFree(base, 4 * grain));
  OK(cudaFree(out));
  return 0;
}
