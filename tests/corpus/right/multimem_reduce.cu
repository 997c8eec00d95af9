// echolo-test: mode=sanitize n=4
// expect: correct
// An all-reduce in one instruction a vector, through the multicast address of a symmetric object.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <vector>

__global__ void all_reduce(float* multicast, int mine, int n) {
  for (int i = mine * n + 4 * static_cast<int>(threadIdx.x); i < (mine + 1) * n; i += 4 * static_cast<int>(blockDim.x)) {
    float a, b, c, d;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                 : "l"(multicast + i)
                 : "memory");
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(multicast + i), "f"(a),
                 "f"(b), "f"(c), "f"(d)
                 : "memory");
  }
}

__global__ void count(int* multicast) {
  asm volatile("multimem.red.relaxed.sys.global.add.s32 [%0], 3;" ::"l"(multicast) : "memory");
}

int main() {
  nvshmem_init();
  const int mine = nvshmem_my_pe(), pes = nvshmem_n_pes(), n = 256;
  float* data = static_cast<float*>(nvshmem_malloc(pes * n * sizeof(float)));
  int* counter = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  std::vector<float> values(pes * n);
  for (int i = 0; i < pes * n; ++i) values[i] = static_cast<float>(i % 17 + mine);
  cudaMemcpy(data, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  auto* all = static_cast<float*>(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, data));
  auto* counters = static_cast<int*>(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, counter));
  if (all == nullptr || counters == nullptr) return 2;
  nvshmem_barrier_all();
  all_reduce<<<1, 32>>>(all, mine, n);
  count<<<1, 32>>>(counters);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  cudaMemcpy(values.data(), data, values.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < pes * n; ++i) {
    if (values[i] != static_cast<float>(pes * (i % 17) + pes * (pes - 1) / 2)) return 1;
  }
  int counted = 0;
  cudaMemcpy(&counted, counter, sizeof counted, cudaMemcpyDeviceToHost);
  if (counted != 3 * 32 * pes) return 3;
  nvshmem_free(data);
  nvshmem_free(counter);
  nvshmem_finalize();
  return 0;
}
