// The sum around a ring of ring.cu, with a fault: every PE waits for its predecessor before it sends, so
// nobody begins.
//   echolo sanitize -n 4 tests/programs/ring_hang.cu
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void ring_sum(const float* mine, float* sum, float* boxes, uint64_t* signals, int count, int pe,
                         int n) {
  const int next = (pe + 1) % n;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum[i] = mine[i];
  __syncthreads();
  const float* passing = mine;
  for (int step = 0; step < n - 1; ++step) {
    float* box = boxes + static_cast<size_t>(step) * count;
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signals + step, NVSHMEM_CMP_EQ, 1);
    __syncthreads();
    nvshmemx_float_put_signal_block(box, passing, count, signals + step, 1, NVSHMEM_SIGNAL_SET, next);
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum[i] += box[i];
    passing = box;
  }
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 256;
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE));

  std::vector<float> host(count);
  for (int i = 0; i < count; ++i) host[i] = static_cast<float>(pe + i % 7);
  float *mine = nullptr, *sum = nullptr;
  cudaMalloc(&mine, count * sizeof(float));
  cudaMalloc(&sum, count * sizeof(float));
  cudaMemcpy(mine, host.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  float* boxes = static_cast<float*>(nvshmem_malloc(static_cast<size_t>(n) * count * sizeof(float)));
  uint64_t* signals = static_cast<uint64_t*>(nvshmem_calloc(n, sizeof(uint64_t)));
  nvshmem_barrier_all();

  ring_sum<<<1, 128>>>(mine, sum, boxes, signals, count, pe, n);
  int wrong = cudaMemcpy(host.data(), sum, count * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < count; ++i) wrong += host[i] != static_cast<float>(n * (n - 1) / 2 + n * (i % 7));
  std::printf("PE %d of %d: %s\n", pe, n, wrong == 0 ? "the sum is right" : "the sum is wrong");

  nvshmem_barrier_all();
  nvshmem_free(signals);
  nvshmem_free(boxes);
  cudaFree(sum);
  cudaFree(mine);
  nvshmem_finalize();
  return wrong != 0;
}
