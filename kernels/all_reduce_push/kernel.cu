// One-shot all-reduce by plain stores into the peers' memory. Small messages travel in words that carry their
// own flag, so that no fence and no separate signal is on the path; large ones in chunks with a flag each,
// and a block adds up a chunk while its next ones are on their way. README.md says why it is free of races.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>

#ifndef KNOB_THREADS
#define KNOB_THREADS 512
#endif
#ifndef KNOB_BLOCKS
#define KNOB_BLOCKS 128
#endif
#ifndef KNOB_CHUNK
#define KNOB_CHUNK 16384  // bytes that travel under one flag
#endif
#ifndef KNOB_WORDS_MAX
#define KNOB_WORDS_MAX 262144  // bytes: messages up to this go in words with flags
#endif
#ifndef KNOB_LAG
#define KNOB_LAG 2  // chunks that a block sends ahead of the one that it adds up
#endif

constexpr int kMaxPes = 8;

// The symmetric memory of every PE, as this one addresses it.
struct Peers {
  char* boxes[kMaxPes];
  uint64_t* arrived[kMaxPes];
};

struct State {
  char* boxes;        // symmetric [2][n_pes][slot bytes]: what each PE sent, for odd and for even calls
  uint64_t* arrived;  // symmetric [2][n_pes][chunks]: last odd or even call whose chunk is there
  uint64_t* calls;    // device [blocks]: calls that this block has completed
  int64_t slot;
  int blocks;
  bool words;
  Peers peers;
};

// --- Words: 4 bytes of data and 4 of flag in each 8, two of them to a store ---

// Eight bytes of a vector of n elements; what lies beyond its end is zero.
template <typename T>
__device__ uint2 load_unit(const T* x, int64_t unit, int64_t n) {
  constexpr int kPer = 8 / sizeof(T);
  const int64_t first = unit * kPer;
  if (first + kPer <= n && reinterpret_cast<uintptr_t>(x) % 8 == 0)
    return reinterpret_cast<const uint2*>(x)[unit];
  T parts[kPer];
  for (int j = 0; j < kPer; ++j) parts[j] = first + j < n ? x[first + j] : T(0.0f);
  uint2 out;
  memcpy(&out, parts, sizeof out);
  return out;
}

template <typename T>
__device__ void store_unit(T* y, int64_t unit, int64_t n, const float (&sum)[8 / sizeof(T)]) {
  constexpr int kPer = 8 / sizeof(T);
  const int64_t first = unit * kPer;
  T parts[kPer];
  for (int j = 0; j < kPer; ++j) parts[j] = T(sum[j]);
  if (first + kPer <= n && reinterpret_cast<uintptr_t>(y) % 8 == 0) {
    uint2 whole;
    memcpy(&whole, parts, sizeof whole);
    reinterpret_cast<uint2*>(y)[unit] = whole;
  } else {
    for (int j = 0; j < kPer; ++j) {
      if (first + j < n) y[first + j] = parts[j];
    }
  }
}

template <typename T>
__device__ void add_unit(float (&sum)[8 / sizeof(T)], uint2 data) {
  T parts[8 / sizeof(T)];
  memcpy(parts, &data, sizeof data);
  for (int j = 0; j < static_cast<int>(8 / sizeof(T)); ++j) sum[j] += static_cast<float>(parts[j]);
}

__device__ void send_words(char* to, uint2 data, uint32_t flag) {
  const uint64_t lo = data.x | static_cast<uint64_t>(flag) << 32, hi = data.y | static_cast<uint64_t>(flag)
                                                                                    << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(lo), "l"(hi) : "memory");
}

__device__ uint2 wait_words(const char* from, uint32_t flag) {
  uint64_t lo, hi;
  do {
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(lo), "=l"(hi) : "l"(from) : "memory");
  } while (lo >> 32 != flag || hi >> 32 != flag);
  return make_uint2(static_cast<uint32_t>(lo), static_cast<uint32_t>(hi));
}

template <typename T>
__global__ void __launch_bounds__(KNOB_THREADS)
    by_words(const T* x, T* y, int64_t n, State s, int pe, int n_pes) {
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const uint32_t flag = static_cast<uint32_t>(call);
  constexpr int64_t kPer = 8 / sizeof(T);
  const int64_t units = (n + kPer - 1) / kPer, parity = (call & 1) * n_pes * s.slot;
  const int64_t first = int64_t{blockIdx.x} * KNOB_THREADS + threadIdx.x,
                step = int64_t{gridDim.x} * KNOB_THREADS;
  for (int64_t u = first; u < units; u += step) {
    const uint2 data = load_unit(x, u, n);
    for (int d = 1; d < n_pes; ++d) {
      send_words(s.peers.boxes[(pe + d) % n_pes] + parity + pe * s.slot + u * 16, data, flag);
    }
  }
  for (int64_t u = first; u < units; u += step) {
    float sum[kPer] = {};
    for (int q = 0; q < n_pes; ++q) {  // in rank order, so that all PEs get the same bits
      add_unit<T>(sum,
                  q == pe ? load_unit(x, u, n) : wait_words(s.boxes + parity + q * s.slot + u * 16, flag));
    }
    store_unit(y, u, n, sum);
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- Chunks ---

template <typename T, int V>
struct alignas(sizeof(T) * V) Vector {
  T v[V];
};

template <typename T, int V>
__device__ void send_chunk(const Peers& peers, int64_t at, const T* x, int64_t lo, int64_t hi, int pe,
                           int n_pes) {
#pragma unroll 4
  for (int64_t i = lo + threadIdx.x * V; i < hi; i += KNOB_THREADS * V) {
    const auto data = *reinterpret_cast<const Vector<T, V>*>(x + i);
    for (int d = 1; d < n_pes; ++d) {
      *reinterpret_cast<Vector<T, V>*>(peers.boxes[(pe + d) % n_pes] + at + i * sizeof(T)) = data;
    }
  }
}

template <typename T, int V>
__device__ void add_chunk(T* y, const T* x, const char* box, int64_t slot, int64_t lo, int64_t hi, int pe,
                          int n_pes) {
#pragma unroll 2
  for (int64_t i = lo + threadIdx.x * V; i < hi; i += KNOB_THREADS * V) {
    float sum[V] = {};
    for (int q = 0; q < n_pes; ++q) {
      const void* from = q == pe ? static_cast<const void*>(x + i) : box + q * slot + i * sizeof(T);
      const auto part = *static_cast<const Vector<T, V>*>(from);
      for (int j = 0; j < V; ++j) sum[j] += static_cast<float>(part.v[j]);
    }
    Vector<T, V> out;
    for (int j = 0; j < V; ++j) out.v[j] = T(sum[j]);
    *reinterpret_cast<Vector<T, V>*>(y + i) = out;
  }
}

template <typename T>
__global__ void __launch_bounds__(KNOB_THREADS)
    by_chunks(const T* x, T* y, int64_t n, State s, int pe, int n_pes) {
  constexpr int kVec = 16 / sizeof(T);
  constexpr int64_t kChunk = KNOB_CHUNK / sizeof(T);
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int64_t parity = (call & 1) * n_pes * s.slot, flags = (call & 1) * n_pes * chunks;
  const bool vectors = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
  const bool other = threadIdx.x < n_pes && threadIdx.x != pe;
  // This block's chunks are blockIdx.x, + gridDim.x, ...; step i sends the i-th and adds up the one of LAG
  // steps before. A block waits for chunk c only after it has sent chunk c + LAG, so the PE that is furthest
  // behind never waits.
  for (int64_t send = blockIdx.x, add = send - KNOB_LAG * int64_t{gridDim.x}; add < chunks;
       send += gridDim.x, add += gridDim.x) {
    if (send < chunks) {
      const int64_t lo = send * kChunk, hi = min(n, lo + kChunk),
                    whole = vectors ? hi - (hi - lo) % kVec : lo;
      const int64_t at = parity + pe * s.slot;
      send_chunk<T, kVec>(s.peers, at, x, lo, whole, pe, n_pes);
      send_chunk<T, 1>(s.peers, at, x, whole, hi, pe, n_pes);
      __syncthreads();  // the release below covers the whole block's stores
      if (other) {
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(s.peers.arrived[threadIdx.x] + flags +
                                                                 pe * chunks + send),
                     "l"(call)
                     : "memory");
      }
    }
    if (add >= 0) {
      if (other) {
        uint64_t there;
        do {
          asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                       : "=l"(there)
                       : "l"(s.arrived + flags + threadIdx.x * chunks + add)
                       : "memory");
        } while (there < call);
      }
      __syncthreads();
      const int64_t lo = add * kChunk, hi = min(n, lo + kChunk), whole = vectors ? hi - (hi - lo) % kVec : lo;
      add_chunk<T, kVec>(y, x, s.boxes + parity, s.slot, lo, whole, pe, n_pes);
      add_chunk<T, 1>(y, x, s.boxes + parity, s.slot, whole, hi, pe, n_pes);
    }
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- The candidate ---

template <typename T>
static int resident_blocks(bool words) {
  int device = 0, sms = 0, per_sm = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (words) {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, by_words<T>, KNOB_THREADS, 0);
  } else {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, by_chunks<T>, KNOB_THREADS, 0);
  }
  return sms * per_sm;
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const bool f32 = launch.dtype == echolo::DType::kF32;
  const int64_t bytes = launch.param("N") * (f32 ? 4 : 2), chunks = (bytes + KNOB_CHUNK - 1) / KNOB_CHUNK;
  s->words = bytes <= KNOB_WORDS_MAX;
  const int64_t units = (bytes + 7) / 8, work = s->words ? (units + KNOB_THREADS - 1) / KNOB_THREADS : chunks;
  // A block waits for blocks of other PEs, so all blocks must be resident at once.
  const int resident = f32 ? resident_blocks<float>(s->words) : resident_blocks<__nv_bfloat16>(s->words);
  s->blocks = static_cast<int>(std::min<int64_t>({work, KNOB_BLOCKS, resident}));
  s->slot = s->words ? units * 16 : (bytes + 15) / 16 * 16;
  const int64_t boxes = 2 * launch.n_pes * s->slot, flags = 2 * launch.n_pes * chunks * sizeof(uint64_t);
  s->boxes = static_cast<char*>(nvshmem_malloc(boxes));
  s->arrived = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->boxes, 0, boxes);
  cudaMemset(s->arrived, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  for (int q = 0; q < launch.n_pes; ++q) {
    s->peers.boxes[q] = static_cast<char*>(nvshmem_ptr(s->boxes, q));
    s->peers.arrived[q] = static_cast<uint64_t*>(nvshmem_ptr(s->arrived, q));
  }
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody sends before every PE has cleared its flags
  return s;
}

template <typename T>
static void run(State* s, const echolo::Launch& launch, const T* x, T* y, int64_t n, cudaStream_t stream) {
  if (s->words) {
    by_words<T><<<s->blocks, KNOB_THREADS, 0, stream>>>(x, y, n, *s, launch.pe, launch.n_pes);
  } else {
    by_chunks<T><<<s->blocks, KNOB_THREADS, 0, stream>>>(x, y, n, *s, launch.pe, launch.n_pes);
  }
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int64_t n = in[0].elements();
  if (launch.dtype == echolo::DType::kF32) {
    run(s, launch, in[0].as<float>(), out[0].as<float>(), n, stream);
  } else {
    run(s, launch, in[0].as<__nv_bfloat16>(), out[0].as<__nv_bfloat16>(), n, stream);
  }
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // no peer still stores into this PE's boxes
  nvshmem_free(s->boxes);
  nvshmem_free(s->arrived);
  cudaFree(s->calls);
  delete s;
}
