// echolo-test: mode=check problem=all_to_all world=2
// expect: data_race
// All warps write one word. The mark is the candidate's own word for it, and a candidate is judged.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <echolo/candidate.hpp>

// All-to-all in one block. Bytes only move, so words do for every dtype; a part is `words` of them.
struct State {
  int* inbox;         // symmetric [2][n][words]: odd and even calls
  uint64_t* arrived;  // symmetric [2][n]: the last odd or even call for which that PE's part is here
  uint64_t* calls;
};

__global__ void exchange(const int* x, int* y, int words, State s, int pe, int n) {
  const uint64_t call = *s.calls + 1;
  int* inbox = s.inbox + (call & 1) * n * words;
  uint64_t* arrived = s.arrived + (call & 1) * n;
  for (int q = 0; q < n; ++q) {
    nvshmemx_putmem_signal_block(inbox + pe * words, x + q * words, words * 4, arrived + pe, call,
                                 NVSHMEM_SIGNAL_SET, q);
  }
  if (threadIdx.x < n) {
    nvshmem_signal_wait_until(arrived + threadIdx.x, NVSHMEM_CMP_GE, call);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n * words; i += blockDim.x) y[i] = inbox[i];
  __syncthreads();
  if (threadIdx.x == 0) *s.calls = call;
  s.calls[1] = threadIdx.x;  // echolo: benign(nobody reads it)  // <-- data-race
}

extern "C" State* candidate_create(const echolo::Launch& l) {
  auto* s = new State{};
  const int64_t bytes = l.param("M") * l.param("N") * (l.dtype == echolo::DType::kF32 ? 4 : 2);
  s->inbox = static_cast<int*>(nvshmem_malloc(2 * bytes));
  s->arrived = static_cast<uint64_t*>(nvshmem_malloc(2 * l.n_pes * sizeof(uint64_t)));
  cudaMalloc(&s->calls, 2 * sizeof(uint64_t));
  cudaMemset(s->arrived, 0, 2 * l.n_pes * sizeof(uint64_t));
  cudaMemset(s->calls, 0, sizeof(uint64_t));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& l, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int bytes = in[0].elements() * (l.dtype == echolo::DType::kF32 ? 4 : 2);
  exchange<<<1, 128, 0, stream>>>(in[0].as<int>(), out[0].as<int>(), bytes / 4 / l.n_pes, *s, l.pe, l.n_pes);
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_free(s->inbox);
  nvshmem_free(s->arrived);
  cudaFree(s->calls);
  delete s;
}
