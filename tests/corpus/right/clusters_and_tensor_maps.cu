// echolo-test: mode=sanitize n=1
// expect: correct
// A cluster launched with cudaLaunchKernelEx: its first block loads tiles of a matrix by TMA for both blocks.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kColumns = 96, kRows = 40, kBoxColumns = 32, kBoxRows = 8;

__device__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__global__ void transpose_tiles(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ alignas(128) float tile[kBoxRows][kBoxColumns];
  __shared__ std::uint64_t full;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const std::uint32_t bar = shared_address(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                 "r"(static_cast<std::uint32_t>(sizeof tile)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  const int x = static_cast<int>(blockIdx.x / 2) * kBoxColumns, y = static_cast<int>(blockIdx.y) * kBoxRows;
  if (rank == 0 && threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(tile)),
        "l"(&map), "r"(x), "r"(y), "r"(bar), "h"(static_cast<std::uint16_t>(3))
        : "memory");
  }
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(bar)
      : "memory");
  // The even block writes the even columns, the odd one the odd columns.
  for (int i = static_cast<int>(threadIdx.x); i < kBoxRows * kBoxColumns / 2; i += static_cast<int>(blockDim.x)) {
    const int row = i % kBoxRows, column = 2 * (i / kBoxRows) + static_cast<int>(rank);
    out[(x + column) * kRows + y + row] = tile[row][column];
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

int main() {
  std::vector<float> in(kRows * kColumns), out(kRows * kColumns);
  for (int i = 0; i < kRows * kColumns; ++i) in[i] = static_cast<float>(i) * 0.25f;
  float *from, *to;
  cudaMalloc(&from, in.size() * sizeof(float));
  cudaMalloc(&to, out.size() * sizeof(float));
  cudaMemcpy(from, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
  if (found != cudaDriverEntryPointSuccess) return 2;
  CUtensorMap map;
  const cuuint64_t dims[] = {kColumns, kRows}, strides[] = {kColumns * sizeof(float)};
  const cuuint32_t box[] = {kBoxColumns, kBoxRows}, steps[] = {1, 1};
  const CUresult made = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, from, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) return 3;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(2 * kColumns / kBoxColumns, kRows / kBoxRows);
  config.blockDim = dim3(64);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, transpose_tiles, map, to) != cudaSuccess) return 4;
  if (cudaDeviceSynchronize() != cudaSuccess) return 5;
  cudaMemcpy(out.data(), to, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      if (out[c * kRows + r] != in[r * kColumns + c]) return 1;
    }
  }
  cudaFree(from);
  cudaFree(to);
  return 0;
}
