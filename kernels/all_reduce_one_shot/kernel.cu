// One-shot all-reduce: every PE sees the whole input of every other PE and adds all of them up itself. One
// exchange, (n_pes - 1) times the input over the link: the choice for small messages. README.md says why it
// is free of races.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>

#ifndef KNOB_PULL
#define KNOB_PULL 0  // 0: put into the peers' inboxes; 1: stage locally, peers load through nvshmem_ptr
#endif
#ifndef KNOB_BLOCKS
#define KNOB_BLOCKS 16
#endif
#ifndef KNOB_THREADS
#define KNOB_THREADS 256
#endif
#ifndef KNOB_CHUNK
#define KNOB_CHUNK 16384  // bytes that travel under one flag
#endif

constexpr int kMaxPes = 8;

// One PE's symmetric memory, as the others address it (null where a peer can't be addressed).
struct Peers {
  char* boxes[kMaxPes];
  uint64_t* arrived[kMaxPes];
};

struct State {
  char* boxes;  // symmetric [2][n_pes][slot]: what each PE contributes, for odd and for even calls
  uint64_t*
      arrived;  // symmetric [2][chunks][n_pes]: the last odd or even call for which that PE's chunk is there
  uint64_t* calls;  // device [blocks]: calls that this block has completed
  int64_t slot;     // elements of one contribution, rounded up to whole vectors
  int blocks;
  bool pull;
  Peers peers;
};

__device__ void release_store(uint64_t* flag, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

__device__ uint64_t acquire_load(const uint64_t* flag) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}

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

// y[i] = sum over PEs of from[pe][i] for i in [lo, hi), in rank order, so that all PEs get the same bits.
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
    one_shot(const T* x, T* y, int64_t n, State s, int pe, int n_pes) {
  constexpr int kVec = 16 / sizeof(T);
  constexpr int64_t kChunk = KNOB_CHUNK / sizeof(T);
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int64_t parity = (call & 1) * n_pes * s.slot, flags = (call & 1) * chunks * n_pes;
  const bool vectors = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;

  __shared__ const T* from[kMaxPes];
  if (threadIdx.x < n_pes) {
    const int q = threadIdx.x;
    const char* box = s.pull ? s.peers.boxes[q] : s.boxes;
    from[q] = q == pe ? x : reinterpret_cast<const T*>(box) + parity + q * s.slot;
  }
  T* mine = reinterpret_cast<T*>(s.boxes) + parity + pe * s.slot;

  // First this block's share of the sending, without a wait in between ...
  for (int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
    const int64_t lo = c * kChunk, hi = min(n, lo + kChunk);
    uint64_t* flag = s.arrived + flags + c * n_pes + pe;
    if (s.pull) {
      const int64_t whole = vectors ? hi - (hi - lo) % kVec : lo;
      copy<T, kVec>(mine, x, lo, whole);
      copy<T, 1>(mine, x, whole, hi);
      __syncthreads();  // the release below covers the whole block's stores
      if (threadIdx.x < n_pes && threadIdx.x != pe) {
        release_store(s.peers.arrived[threadIdx.x] + flags + c * n_pes + pe, call);
      }
    } else {
      for (int d = 1; d < n_pes; ++d) {
        nvshmemx_putmem_signal_block(mine + lo, x + lo, (hi - lo) * sizeof(T), flag, call, NVSHMEM_SIGNAL_SET,
                                     (pe + d) % n_pes);
      }
    }
  }
  // ... then its share of the sums, each as soon as its chunk has come from everybody.
  for (int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
    const int64_t lo = c * kChunk, hi = min(n, lo + kChunk);
    if (threadIdx.x < n_pes && threadIdx.x != pe) {
      uint64_t* flag = s.arrived + flags + c * n_pes + threadIdx.x;
      if (s.pull) {
        while (acquire_load(flag) < call) {
        }
      } else {
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, call);
      }
    }
    __syncthreads();
    const int64_t whole = vectors ? hi - (hi - lo) % kVec : lo;
    add_up<T, kVec>(y, from, n_pes, lo, whole);
    add_up<T, 1>(y, from, n_pes, whole, hi);
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

template <typename T>
static int resident_blocks() {
  int device = 0, sms = 0, per_sm = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, one_shot<T>, KNOB_THREADS, 0);
  return sms * per_sm;
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const bool f32 = launch.dtype == echolo::DType::kF32;
  const int64_t bytes = f32 ? 4 : 2, vec = 16 / bytes, n = launch.param("N");
  const int64_t flags = 2 * ((n * bytes + KNOB_CHUNK - 1) / KNOB_CHUNK) * launch.n_pes * sizeof(uint64_t);
  s->slot = (n + vec - 1) / vec * vec;
  // A block waits for blocks of other PEs, so all blocks must be resident at once.
  s->blocks = std::min(KNOB_BLOCKS, f32 ? resident_blocks<float>() : resident_blocks<__nv_bfloat16>());
  s->boxes = static_cast<char*>(nvshmem_malloc(2 * launch.n_pes * s->slot * bytes));
  s->arrived = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->arrived, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  s->pull = KNOB_PULL;
  for (int q = 0; q < launch.n_pes; ++q) {
    s->peers.boxes[q] = static_cast<char*>(nvshmem_ptr(s->boxes, q));
    s->peers.arrived[q] = static_cast<uint64_t*>(nvshmem_ptr(s->arrived, q));
    s->pull = s->pull && s->peers.boxes[q] != nullptr;  // no peer pointers on this fabric: push instead
  }
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody signals before every PE has cleared its flags
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int64_t n = in[0].elements();
  if (launch.dtype == echolo::DType::kF32) {
    one_shot<float><<<s->blocks, KNOB_THREADS, 0, stream>>>(in[0].as<float>(), out[0].as<float>(), n, *s,
                                                            launch.pe, launch.n_pes);
  } else {
    one_shot<__nv_bfloat16><<<s->blocks, KNOB_THREADS, 0, stream>>>(
        in[0].as<__nv_bfloat16>(), out[0].as<__nv_bfloat16>(), n, *s, launch.pe, launch.n_pes);
  }
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // no peer still loads from this PE's boxes
  nvshmem_free(s->boxes);
  nvshmem_free(s->arrived);
  cudaFree(s->calls);
  delete s;
}
