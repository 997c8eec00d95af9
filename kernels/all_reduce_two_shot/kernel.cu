// Two-shot all-reduce: PE r adds up shard r of everybody (reduce-scatter), then sends the sum to all
// (all-gather). Twice (n_pes - 1) / n_pes of the input over the link: the choice for large messages.
// README.md says why the two exchanges acknowledge each other, so that one set of buffers is enough.
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

constexpr int kMaxPes = 8;

struct State {
  char* parts;        // symmetric [n_pes][shard]: what PE q contributes to this PE's shard
  char* sums;         // symmetric [n_pes][shard]: the finished shard of PE q
  uint64_t* part_in;  // symmetric [chunks][n_pes]: last call for which that chunk of q's part is there
  uint64_t*
      sum_in;  // symmetric [chunks][n_pes]: last call for which that chunk of q's finished shard is there
  uint64_t* calls;  // device [blocks]: calls that this block has completed
  int64_t shard;    // elements of a shard, whole vectors; the last shards may be shorter or empty
  int blocks;
};

template <typename T, int V>
struct alignas(sizeof(T) * V) Vector {
  T v[V];
};

template <typename T, int V>
__device__ void copy(T* to, const T* from, int64_t lo, int64_t hi) {
  for (int64_t i = lo + threadIdx.x * V; i < hi; i += KNOB_THREADS * V) {
    *reinterpret_cast<Vector<T, V>*>(to + i) = *reinterpret_cast<const Vector<T, V>*>(from + i);
  }
}

// y[i] = sum over PEs of from[pe][i] for i in [lo, hi), in rank order.
template <typename T, int V>
__device__ void add_up(T* y, const T* const* from, int n_pes, int64_t lo, int64_t hi) {
  for (int64_t i = lo + threadIdx.x * V; i < hi; i += KNOB_THREADS * V) {
    float sum[V] = {};
    for (int q = 0; q < n_pes; ++q) {
      const auto part = *reinterpret_cast<const Vector<T, V>*>(from[q] + i);
      for (int j = 0; j < V; ++j) sum[j] += static_cast<float>(part.v[j]);
    }
    Vector<T, V> out;
    for (int j = 0; j < V; ++j) out.v[j] = T(sum[j]);
    *reinterpret_cast<Vector<T, V>*>(y + i) = out;
  }
}

template <typename T>
__global__ void __launch_bounds__(KNOB_THREADS)
    two_shot(const T* x, T* y, int64_t n, State s, int pe, int n_pes) {
  constexpr int kVec = 16 / sizeof(T);
  constexpr int64_t kChunk = KNOB_CHUNK / sizeof(T);
  const int64_t chunks = (s.shard + kChunk - 1) / kChunk;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const bool vectors = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
  T* parts = reinterpret_cast<T*>(s.parts);
  T* sums = reinterpret_cast<T*>(s.sums);
  // The end of chunk c of PE q's shard, counted from the shard's start; at or before c * kChunk where it is
  // empty.
  auto end_of = [&](int64_t c, int q) { return min(min(s.shard, n - q * s.shard), (c + 1) * kChunk); };

  __shared__ const T* from[kMaxPes];
  if (threadIdx.x < n_pes) {
    from[threadIdx.x] = threadIdx.x == pe ? x + pe * s.shard : parts + threadIdx.x * s.shard;
  }
  // 1. To each peer, my part of its shard.
  for (int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
    const int64_t lo = c * kChunk;
    for (int d = 1; d < n_pes; ++d) {
      const int to = (pe + d) % n_pes;
      const int64_t hi = end_of(c, to);
      if (lo < hi) {
        nvshmemx_putmem_signal_block(parts + pe * s.shard + lo, x + to * s.shard + lo, (hi - lo) * sizeof(T),
                                     s.part_in + c * n_pes + pe, call, NVSHMEM_SIGNAL_SET, to);
      }
    }
  }
  // 2. My shard's sum, and off with it to everybody.
  for (int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
    const int64_t lo = c * kChunk, hi = end_of(c, pe);
    if (lo >= hi) break;
    if (threadIdx.x < n_pes && threadIdx.x != pe) {
      nvshmem_signal_wait_until(s.part_in + c * n_pes + threadIdx.x, NVSHMEM_CMP_GE, call);
    }
    __syncthreads();
    T* mine = y + pe * s.shard;
    const int64_t whole = vectors ? hi - (hi - lo) % kVec : lo;
    add_up<T, kVec>(mine, from, n_pes, lo, whole);
    add_up<T, 1>(mine, from, n_pes, whole, hi);
    __syncthreads();  // all of the chunk is summed, and all of its parts are read
    for (int d = 1; d < n_pes; ++d) {
      nvshmemx_putmem_signal_block(sums + pe * s.shard + lo, mine + lo, (hi - lo) * sizeof(T),
                                   s.sum_in + c * n_pes + pe, call, NVSHMEM_SIGNAL_SET, (pe + d) % n_pes);
    }
  }
  // 3. The other shards, as they come in.
  for (int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
    const int64_t lo = c * kChunk;
    if (threadIdx.x < n_pes && threadIdx.x != pe && lo < end_of(c, threadIdx.x)) {
      nvshmem_signal_wait_until(s.sum_in + c * n_pes + threadIdx.x, NVSHMEM_CMP_GE, call);
    }
    __syncthreads();
    for (int d = 1; d < n_pes; ++d) {
      const int q = (pe + d) % n_pes;
      const int64_t hi = end_of(c, q);
      if (lo >= hi) continue;
      const int64_t whole = vectors ? hi - (hi - lo) % kVec : lo;
      copy<T, kVec>(y + q * s.shard, sums + q * s.shard, lo, whole);
      copy<T, 1>(y + q * s.shard, sums + q * s.shard, whole, hi);
    }
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

template <typename T>
static int resident_blocks() {
  int device = 0, sms = 0, per_sm = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, two_shot<T>, KNOB_THREADS, 0);
  return sms * per_sm;
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const bool f32 = launch.dtype == echolo::DType::kF32;
  const int64_t bytes = f32 ? 4 : 2, vec = 16 / bytes, n = launch.param("N");
  const int64_t per_pe = (n + launch.n_pes - 1) / launch.n_pes;
  s->shard = (per_pe + vec - 1) / vec * vec;
  const int64_t flags = (s->shard * bytes + KNOB_CHUNK - 1) / KNOB_CHUNK * launch.n_pes * sizeof(uint64_t);
  // A block waits for blocks of other PEs, so all blocks must be resident at once.
  s->blocks = std::min(KNOB_BLOCKS, f32 ? resident_blocks<float>() : resident_blocks<__nv_bfloat16>());
  s->parts = static_cast<char*>(nvshmem_malloc(launch.n_pes * s->shard * bytes));
  s->sums = static_cast<char*>(nvshmem_malloc(launch.n_pes * s->shard * bytes));
  s->part_in = static_cast<uint64_t*>(nvshmem_malloc(flags));
  s->sum_in = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->part_in, 0, flags);
  cudaMemset(s->sum_in, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody signals before every PE has cleared its flags
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int64_t n = in[0].elements();
  if (launch.dtype == echolo::DType::kF32) {
    two_shot<float><<<s->blocks, KNOB_THREADS, 0, stream>>>(in[0].as<float>(), out[0].as<float>(), n, *s,
                                                            launch.pe, launch.n_pes);
  } else {
    two_shot<__nv_bfloat16><<<s->blocks, KNOB_THREADS, 0, stream>>>(
        in[0].as<__nv_bfloat16>(), out[0].as<__nv_bfloat16>(), n, *s, launch.pe, launch.n_pes);
  }
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_free(s->parts);
  nvshmem_free(s->sums);
  nvshmem_free(s->part_in);
  nvshmem_free(s->sum_in);
  cudaFree(s->calls);
  delete s;
}
