// A candidate of three sorts: right (sums a vector over all PEs, surviving calls without a barrier between them), and,
// by the parameter `fault`, wrong in several ways.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <echolo/candidate.hpp>

// Each call uses the half of `inbox` of its parity; a PE can be one call ahead of another at most, because it waits for
// everybody's part of each call.
__global__ void all_reduce(const float* in, float* out, float* inbox, uint64_t* arrived, uint64_t* epoch, int n) {
  const int me = nvshmem_my_pe(), n_pes = nvshmem_n_pes();
  const uint64_t call = *epoch + 1;
  float* half = inbox + (call % 2) * n * n_pes;
  __syncthreads();
  for (int pe = 0; pe < n_pes; ++pe) {
    nvshmemx_float_put_signal_block(half + me * n, in, n, arrived + me, call, NVSHMEM_SIGNAL_SET, pe);
  }
  if (threadIdx.x < n_pes) nvshmem_signal_wait_until(arrived + threadIdx.x, NVSHMEM_CMP_GE, call);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = 0;
    for (int pe = 0; pe < n_pes; ++pe) sum += half[pe * n + i];
    out[i] = sum;
  }
  if (threadIdx.x == 0) {
    nvshmem_quiet();  // or the next call's signal could overtake this call's data
    *epoch = call;
  }
}
__global__ void nothing() {}

struct State {
  float* inbox;
  uint64_t *arrived, *epoch;
  int calls = 0;
};

extern "C" State* candidate_create(const echolo::Launch& launch) {
  if (launch.param("fault") == 1) throw std::runtime_error("no such luck");
  const std::size_t n = launch.param("n");
  State* state = new State;
  state->inbox = static_cast<float*>(nvshmem_malloc(2 * n * launch.n_pes * sizeof(float)));
  state->arrived = static_cast<uint64_t*>(nvshmem_calloc(launch.n_pes, sizeof(uint64_t)));
  cudaMalloc(&state->epoch, sizeof(uint64_t));
  cudaMemset(state->epoch, 0, sizeof(uint64_t));
  cudaDeviceSynchronize();  // the stream of the calls does not wait for the default stream
  nvshmem_barrier_all();
  return state;
}

extern "C" void candidate_run(State* state, const echolo::Launch& launch, echolo::TensorList in, echolo::TensorList out,
                              cudaStream_t stream) {
  ++state->calls;
  const long fault = launch.param("fault");
  if (fault == 2 && state->calls == 2) std::exit(0);
  if (fault == 3 && state->calls == 2 && launch.pe == 1) *out[0].as<float>() = 1;  // dereference
  if (fault == 4) nothing<<<1, 4096, 0, stream>>>();
  if (fault == 5) cudaStreamSynchronize(stream);  // breaks a capture
  if (fault == 6 && state->calls == 3) throw 42;
  if (fault == 7 && state->calls == 2) {
    for (volatile int i = 0;; i = i + 1) {
    }
  }
  if (fault == 8) return;
  all_reduce<<<1, 64, 0, stream>>>(in[0].as<float>(), out[0].as<float>(), state->inbox, state->arrived, state->epoch,
                                   static_cast<int>(in[0].elements()));
}

extern "C" void candidate_destroy(State* state) {
  nvshmem_free(state->inbox);
  nvshmem_free(state->arrived);
  cudaFree(state->epoch);
  delete state;
}
