// echolo-test: mode=check problem=all_to_all world=2
// expect: correct
// The grid is bounded by what the GPU holds; blocks take several items each.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <echolo/candidate.hpp>

// All-to-all in one block. Bytes only move, so words do for every dtype; a part is `words` of them.
struct State {
  int* inbox;         // symmetric [2][n][words]: odd and even calls
  uint64_t* arrived;  // symmetric [2][n]: the last odd or even call for which that PE's part is here
  unsigned* here;     // blocks that have come to the barrier, all calls together
  uint64_t* calls;
};

constexpr int kItems = 150;
constexpr int kShared = 160 * 1024;

__global__ void exchange(const int* x, int* y, int words, State s, int pe, int n) {
  const uint64_t call = s.calls[blockIdx.x] + 1;
  int* inbox = s.inbox + (call & 1) * n * words;
  uint64_t* arrived = s.arrived + (call & 1) * n;
  for (int q = 0; q < n && blockIdx.x == 0; ++q) {
    nvshmemx_putmem_signal_block(inbox + pe * words, x + q * words, words * 4, arrived + pe, call,
                                 NVSHMEM_SIGNAL_SET, q);
  }
  if (blockIdx.x == 0 && threadIdx.x < n) {
    nvshmem_signal_wait_until(arrived + threadIdx.x, NVSHMEM_CMP_GE, call);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(s.here, 1);
    while (*static_cast<volatile unsigned*>(s.here) < call * gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
  for (int item = blockIdx.x; item < kItems; item += gridDim.x) {
    for (int i = item * blockDim.x + threadIdx.x; i < n * words; i += kItems * blockDim.x) y[i] = inbox[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

extern "C" State* candidate_create(const echolo::Launch& l) {
  auto* s = new State{};
  const int64_t bytes = l.param("M") * l.param("N") * (l.dtype == echolo::DType::kF32 ? 4 : 2);
  s->inbox = static_cast<int*>(nvshmem_malloc(2 * bytes));
  s->arrived = static_cast<uint64_t*>(nvshmem_malloc(2 * l.n_pes * sizeof(uint64_t)));
  cudaMalloc(&s->here, sizeof(unsigned));
  cudaMalloc(&s->calls, kItems * sizeof(uint64_t));
  cudaMemset(s->arrived, 0, 2 * l.n_pes * sizeof(uint64_t));
  cudaMemset(s->here, 0, sizeof(unsigned));
  cudaMemset(s->calls, 0, kItems * sizeof(uint64_t));
  cudaFuncSetAttribute(exchange, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& l, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int bytes = in[0].elements() * (l.dtype == echolo::DType::kF32 ? 4 : 2);
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int blocks = sms < kItems ? sms : kItems;
  exchange<<<blocks, 32, kShared, stream>>>(in[0].as<int>(), out[0].as<int>(), bytes / 4 / l.n_pes, *s, l.pe,
                                            l.n_pes);
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_free(s->inbox);
  nvshmem_free(s->arrived);
  cudaFree(s->here);
  cudaFree(s->calls);
  delete s;
}
