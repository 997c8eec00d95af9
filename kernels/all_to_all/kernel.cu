// All-to-all: part q of my input becomes part `pe` of PE q's output. Each part is put straight into the
// receiver's inbox, chunk by chunk with a signal each, and copied to the output as it arrives.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>

#ifndef KNOB_BLOCKS
#define KNOB_BLOCKS 32
#endif
#ifndef KNOB_THREADS
#define KNOB_THREADS 256
#endif
#ifndef KNOB_CHUNK
#define KNOB_CHUNK 16384  // bytes that travel under one flag
#endif

struct State {
  char* inbox;  // symmetric [2][n_pes][slot]: what each PE sent, for odd and for even calls
  uint64_t*
      arrived;  // symmetric [2][n_pes][chunks]: the last odd or even call for which that PE's chunk is there
  uint64_t* calls;  // device [blocks]: calls that this block has completed
  int64_t slot;     // bytes of one part, rounded up to 16
  int blocks;
};

template <typename V>
__device__ void copy(char* to, const char* from, int64_t bytes) {
  for (int64_t i = threadIdx.x; i < bytes / static_cast<int64_t>(sizeof(V)); i += KNOB_THREADS) {
    reinterpret_cast<V*>(to)[i] = reinterpret_cast<const V*>(from)[i];
  }
}

// Data only moves, so bytes do for every type of elements of two bytes or more.
__device__ void copy_part(char* to, const char* from, int64_t bytes) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes) % 16 == 0) {
    copy<uint4>(to, from, bytes);
  } else {
    copy<uint16_t>(to, from, bytes);
  }
}

__global__ void __launch_bounds__(KNOB_THREADS)
    exchange(const char* x, char* y, int64_t part, State s, int pe, int n_pes) {
  const int64_t chunks = (part + KNOB_CHUNK - 1) / KNOB_CHUNK;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  char* inbox = s.inbox + (call & 1) * n_pes * s.slot;
  uint64_t* arrived = s.arrived + (call & 1) * n_pes * chunks;

  // First this block's share of the sending (d = 0 is my own part, which needs no link) ...
  for (int64_t i = blockIdx.x; i < n_pes * chunks; i += gridDim.x) {
    const int to = (pe + i / chunks) % n_pes;
    const int64_t c = i % chunks, at = c * KNOB_CHUNK, bytes = min(part - at, int64_t{KNOB_CHUNK});
    if (to == pe) {
      copy_part(y + pe * part + at, x + pe * part + at, bytes);
    } else {
      nvshmemx_putmem_signal_block(inbox + pe * s.slot + at, x + to * part + at, bytes,
                                   arrived + pe * chunks + c, call, NVSHMEM_SIGNAL_SET, to);
    }
  }
  // ... then its share of the receiving, nearest sender first, as they send to their nearest first.
  for (int64_t i = chunks + blockIdx.x; i < n_pes * chunks; i += gridDim.x) {
    const int from = (pe + n_pes - i / chunks) % n_pes;
    const int64_t c = i % chunks, at = c * KNOB_CHUNK, bytes = min(part - at, int64_t{KNOB_CHUNK});
    if (threadIdx.x == 0) nvshmem_signal_wait_until(arrived + from * chunks + c, NVSHMEM_CMP_GE, call);
    __syncthreads();
    copy_part(y + from * part + at, inbox + from * s.slot + at, bytes);
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const int64_t bytes = launch.dtype == echolo::DType::kF32 ? 4 : 2;
  const int64_t part = launch.param("M") / launch.n_pes * launch.param("N") * bytes;
  const int64_t flags = 2 * launch.n_pes * ((part + KNOB_CHUNK - 1) / KNOB_CHUNK) * sizeof(uint64_t);
  int device = 0, sms = 0, per_sm = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, exchange, KNOB_THREADS, 0);
  s->blocks =
      std::min(KNOB_BLOCKS, sms * per_sm);  // blocks wait for blocks of other PEs: all must be resident
  s->slot = (part + 15) / 16 * 16;
  s->inbox = static_cast<char*>(nvshmem_malloc(2 * launch.n_pes * s->slot));
  s->arrived = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->arrived, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody signals before every PE has cleared its flags
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int64_t bytes = launch.dtype == echolo::DType::kF32 ? 4 : 2;
  exchange<<<s->blocks, KNOB_THREADS, 0, stream>>>(in[0].as<char>(), out[0].as<char>(),
                                                   in[0].elements() / launch.n_pes * bytes, *s, launch.pe,
                                                   launch.n_pes);
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_free(s->inbox);
  nvshmem_free(s->arrived);
  cudaFree(s->calls);
  delete s;
}
