// Ulysses combine in one launch: each PE stores the positions that a peer keeps straight into the peer's
// memory, and the receiver puts them between its own heads. Small messages travel in words that carry their
// own flag, large ones in chunks with a flag each. README.md says why it is free of races.
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
#define KNOB_WORDS_MAX 262144  // bytes: parts up to this go in words with flags
#endif
#ifndef KNOB_LAG
#define KNOB_LAG 2  // chunks that a block sends ahead of the one that it receives
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

// What one PE sends to another are `part` bytes in a row; the receiver has them in rows of `row` bytes, one
// in n_pes rows' distance.
struct Layout {
  const char* x;
  char* y;
  int64_t part;
  uint32_t row;
  int pe, n_pes;
  __device__ const char* from(int to) const { return x + to * part; }
  __device__ char* place(int source, int64_t at) const {
    const uint32_t line = static_cast<uint32_t>(at) / row;
    return y + (int64_t{line} * n_pes + source) * row + (at - int64_t{line} * row);
  }
};

// --- Words: 4 bytes of data and 4 of flag in each 8, two of them to a store ---

__device__ uint2 load_unit(const char* from) {
  if (reinterpret_cast<uintptr_t>(from) % 8 == 0) return *reinterpret_cast<const uint2*>(from);
  const auto* parts = reinterpret_cast<const uint16_t*>(from);
  return make_uint2(parts[0] | uint32_t{parts[1]} << 16, parts[2] | uint32_t{parts[3]} << 16);
}

__device__ void store_unit(char* to, uint2 data) {
  if (reinterpret_cast<uintptr_t>(to) % 8 == 0) {
    *reinterpret_cast<uint2*>(to) = data;
  } else {
    auto* parts = reinterpret_cast<uint16_t*>(to);
    parts[0] = static_cast<uint16_t>(data.x);
    parts[1] = static_cast<uint16_t>(data.x >> 16);
    parts[2] = static_cast<uint16_t>(data.y);
    parts[3] = static_cast<uint16_t>(data.y >> 16);
  }
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

__global__ void __launch_bounds__(KNOB_THREADS) by_words(Layout l, State s) {
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const uint32_t flag = static_cast<uint32_t>(call);
  const int64_t units = l.part / 8, parity = (call & 1) * l.n_pes * s.slot;
  const int64_t first = int64_t{blockIdx.x} * KNOB_THREADS + threadIdx.x,
                step = int64_t{gridDim.x} * KNOB_THREADS;
  for (int d = 1; d < l.n_pes; ++d) {
    const int to = (l.pe + d) % l.n_pes;
    char* box = s.peers.boxes[to] + parity + l.pe * s.slot;
    for (int64_t u = first; u < units; u += step)
      send_words(box + u * 16, load_unit(l.from(to) + u * 8), flag);
  }
  for (int64_t u = first; u < units; u += step)
    store_unit(l.place(l.pe, u * 8), load_unit(l.from(l.pe) + u * 8));
  for (int d = 1; d < l.n_pes; ++d) {
    const int source = (l.pe + l.n_pes - d) % l.n_pes;
    const char* box = s.boxes + parity + source * s.slot;
    for (int64_t u = first; u < units; u += step)
      store_unit(l.place(source, u * 8), wait_words(box + u * 16, flag));
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- Chunks ---

template <typename V>
__device__ void send_chunk(char* box, const char* from, int64_t lo, int64_t hi) {
#pragma unroll 4
  for (int64_t at = lo + threadIdx.x * sizeof(V); at < hi; at += KNOB_THREADS * sizeof(V)) {
    *reinterpret_cast<V*>(box + at) = *reinterpret_cast<const V*>(from + at);
  }
}

template <typename V>
__device__ void place_chunk(const Layout& l, int source, const char* from, int64_t lo, int64_t hi) {
#pragma unroll 4
  for (int64_t at = lo + threadIdx.x * sizeof(V); at < hi; at += KNOB_THREADS * sizeof(V)) {
    *reinterpret_cast<V*>(l.place(source, at)) = *reinterpret_cast<const V*>(from + at);
  }
}

__global__ void __launch_bounds__(KNOB_THREADS) by_chunks(Layout l, State s) {
  const int64_t chunks = (l.part + KNOB_CHUNK - 1) / KNOB_CHUNK, items = (l.n_pes - 1) * chunks;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int64_t parity = (call & 1) * l.n_pes * s.slot, flags = (call & 1) * l.n_pes * chunks;
  const bool vectors =
      (reinterpret_cast<uintptr_t>(l.x) | reinterpret_cast<uintptr_t>(l.y) | l.part | l.row) % 16 == 0;
  // Item i is chunk i % chunks to or from the PE in distance 1 + i / chunks. A block waits for an item only
  // after it has sent LAG later ones, so the PE that is furthest behind never waits.
  for (int64_t send = blockIdx.x, get = send - KNOB_LAG * int64_t{gridDim.x}; get < items;
       send += gridDim.x, get += gridDim.x) {
    if (send < items) {
      const int to = (l.pe + 1 + static_cast<int>(send / chunks)) % l.n_pes;
      const int64_t c = send % chunks, lo = c * KNOB_CHUNK, hi = min(l.part, lo + KNOB_CHUNK);
      char* box = s.peers.boxes[to] + parity + l.pe * s.slot;
      vectors ? send_chunk<uint4>(box, l.from(to), lo, hi) : send_chunk<uint16_t>(box, l.from(to), lo, hi);
      __syncthreads();  // the release below covers the whole block's stores
      if (threadIdx.x == 0) {
        asm volatile(
            "st.release.sys.global.u64 [%0], %1;" ::"l"(s.peers.arrived[to] + flags + l.pe * chunks + c),
            "l"(call)
            : "memory");
      }
      if (send < chunks) {  // my own part needs no link
        vectors ? place_chunk<uint4>(l, l.pe, l.from(l.pe), lo, hi)
                : place_chunk<uint16_t>(l, l.pe, l.from(l.pe), lo, hi);
      }
    }
    if (get >= 0) {
      const int source = (l.pe + l.n_pes - 1 - static_cast<int>(get / chunks)) % l.n_pes;
      const int64_t c = get % chunks, lo = c * KNOB_CHUNK, hi = min(l.part, lo + KNOB_CHUNK);
      if (threadIdx.x == 0) {
        uint64_t there;
        do {
          asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                       : "=l"(there)
                       : "l"(s.arrived + flags + source * chunks + c)
                       : "memory");
        } while (there < call);
      }
      __syncthreads();
      const char* box = s.boxes + parity + source * s.slot;
      vectors ? place_chunk<uint4>(l, source, box, lo, hi) : place_chunk<uint16_t>(l, source, box, lo, hi);
    }
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- The candidate ---

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const int64_t element = launch.dtype == echolo::DType::kF32 ? 4 : 2;
  const int64_t row = launch.param("H") / launch.n_pes * launch.param("D") * element;
  const int64_t part = launch.param("L") / launch.n_pes * row, chunks = (part + KNOB_CHUNK - 1) / KNOB_CHUNK;
  s->words = part <= KNOB_WORDS_MAX && row % 8 == 0;
  int device = 0, sms = 0, per_sm = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (s->words) {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, by_words, KNOB_THREADS, 0);
  } else {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, by_chunks, KNOB_THREADS, 0);
  }
  // A block waits for blocks of other PEs, so all blocks must be resident at once.
  const int64_t work = s->words ? (part / 8 + KNOB_THREADS - 1) / KNOB_THREADS : (launch.n_pes - 1) * chunks;
  s->blocks = static_cast<int>(std::min<int64_t>({work, KNOB_BLOCKS, int64_t{sms} * per_sm}));
  s->slot = s->words ? part * 2 : (part + 15) / 16 * 16;
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

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int64_t element = launch.dtype == echolo::DType::kF32 ? 4 : 2;
  const Layout layout{in[0].as<char>(),
                      out[0].as<char>(),
                      in[0].elements() / launch.n_pes * element,
                      static_cast<uint32_t>(in[0].shape[1] * in[0].shape[2] * element),
                      launch.pe,
                      launch.n_pes};
  if (s->words) {
    by_words<<<s->blocks, KNOB_THREADS, 0, stream>>>(layout, *s);
  } else {
    by_chunks<<<s->blocks, KNOB_THREADS, 0, stream>>>(layout, *s);
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
