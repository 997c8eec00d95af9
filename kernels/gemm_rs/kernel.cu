// GEMM + reduce-scatter in one kernel: rows of A @ B are summed over PEs, and PE r keeps the r-th part of
// them. Every tile of a partial product leaves for its owner as soon as it is done; a PE's own tiles come
// last and are added to what has arrived meanwhile. bf16 goes through the tensor cores, f32 through FMA.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>
#include <type_traits>

#ifndef KNOB_PULL
#define KNOB_PULL \
  0  // 0: tiles are put into their owner's inbox; 1: they wait in the outbox until the owner gets them
#endif
#ifndef KNOB_TILE_M
#define KNOB_TILE_M 64
#endif
#ifndef KNOB_TILE_N
#define KNOB_TILE_N 64
#endif
#ifndef KNOB_STAGES
#define KNOB_STAGES 3  // shared-memory stages of the GEMM pipeline
#endif
#ifndef KNOB_THREADS
#define KNOB_THREADS 128
#endif

constexpr int kTileM = KNOB_TILE_M, kTileN = KNOB_TILE_N, kTile = kTileM * kTileN;
using bf16 = __nv_bfloat16;

struct State {
  void* outbox;     // symmetric [2][n_pes][tiles][kTileM][kTileN]: partial tiles by owner; odd, even calls
  void* inbox;      // symmetric, the same shape: partial tiles of this PE's rows from each PE
  uint64_t* ready;  // symmetric [2][n_pes][tiles]: last odd or even call whose tile is in its box
  uint64_t* calls;  // device [blocks]: calls that this block has completed
  int blocks;
};

// --- One tile of a product ---

template <typename T>
constexpr int kVec = 16 / sizeof(T);
template <typename T>
constexpr int kTileK = 64 / sizeof(T);

template <typename T>
struct Stage {  // rows are padded by 16 bytes, against bank conflicts
  T a[kTileM][kTileK<T> + kVec<T>];
  T b[kTileK<T>][kTileN + kVec<T>];
};

// The tensor-core form: each warp owns kM x kN of the tile, as 16 x 8 fragments.
struct MmaTile {
  static constexpr int kWarps = KNOB_THREADS / 32, kWarpsM = kTileM >= 32 ? 2 : 1, kWarpsN = kWarps / kWarpsM;
  static constexpr int kM = kTileM / kWarpsM, kN = kTileN / kWarpsN;
  static_assert(kM % 16 == 0 && kN % 8 == 0, "a warp's part must consist of 16 x 8 fragments");
  float acc[kM / 16][kN / 8][4] = {};

  __device__ static int row0() { return threadIdx.x / 32 / kWarpsN * kM; }
  __device__ static int col0() { return threadIdx.x / 32 % kWarpsN * kN; }

  __device__ void multiply(const Stage<bf16>& s) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < kTileK<bf16>; k += 16) {
      uint32_t a[kM / 16][4], b[kN / 8][2];
#pragma unroll
      for (int i = 0; i < kM / 16; ++i) {
        const auto at = __cvta_generic_to_shared(&s.a[row0() + i * 16 + lane % 16][k + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
                     : "r"(static_cast<uint32_t>(at))
                     : "memory");
      }
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) {
        const auto at = __cvta_generic_to_shared(&s.b[k + lane % 16][col0() + j * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(b[j][0]), "=r"(b[j][1])
                     : "r"(static_cast<uint32_t>(at))
                     : "memory");
      }
#pragma unroll
      for (int i = 0; i < kM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < kN / 8; ++j) {
          float* c = acc[i][j];
          asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
              "%9}, "
              "{%0, %1, %2, %3};"
              : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
              : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
        }
      }
    }
  }

  __device__ void store(bf16* c, int64_t pitch, int rows, int cols) const {
    const int lane = threadIdx.x % 32;
    const bool pairs = pitch % 2 == 0 && reinterpret_cast<uintptr_t>(c) % 4 == 0;
#pragma unroll
    for (int i = 0; i < kM / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = row0() + i * 16 + half * 8 + lane / 4, col = col0() + j * 8 + lane % 4 * 2;
          const float lo = acc[i][j][half * 2], hi = acc[i][j][half * 2 + 1];
          bf16* to = c + row * pitch + col;
          if (row < rows && col + 1 < cols && pairs) {
            *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(lo, hi);
          } else if (row < rows && col < cols) {
            to[0] = __float2bfloat16(lo);
            if (col + 1 < cols) to[1] = __float2bfloat16(hi);
          }
        }
      }
    }
  }
};

// The FMA form: thread (y, x) of kY x 16 owns every kY-th row and every 16th column.
struct FmaTile {
  static constexpr int kY = KNOB_THREADS / 16;
  static_assert(kTileM % kY == 0 && kTileN % 16 == 0, "the tile must consist of kY x 16 parts");
  float acc[kTileM / kY][kTileN / 16] = {};

  __device__ void multiply(const Stage<float>& s) {
    const int y = threadIdx.x / 16, x = threadIdx.x % 16;
#pragma unroll
    for (int k = 0; k < kTileK<float>; ++k) {
#pragma unroll
      for (int i = 0; i < kTileM / kY; ++i) {
#pragma unroll
        for (int j = 0; j < kTileN / 16; ++j) acc[i][j] += s.a[y + i * kY][k] * s.b[k][x + j * 16];
      }
    }
  }

  __device__ void store(float* c, int64_t pitch, int rows, int cols) const {
    const int y = threadIdx.x / 16, x = threadIdx.x % 16;
#pragma unroll
    for (int i = 0; i < kTileM / kY; ++i) {
#pragma unroll
      for (int j = 0; j < kTileN / 16; ++j) {
        const int row = y + i * kY, col = x + j * 16;
        if (row < rows && col < cols) c[row * pitch + col] = acc[i][j];
      }
    }
  }
};

// Copies the rows x cols corner of a row-major matrix into a stage; what lies outside of the matrix becomes
// zero.
template <typename T, int R, int C>
__device__ void load(T (&to)[R][C], const T* from, int64_t pitch, int rows, int cols) {
  constexpr int kPerRow = C / kVec<T> - 1;  // the padding stays as it is
  const bool vectors = reinterpret_cast<uintptr_t>(from) % 16 == 0 && pitch % kVec<T> == 0;
  for (int i = threadIdx.x; i < R * kPerRow; i += KNOB_THREADS) {
    const int r = i / kPerRow, c = i % kPerRow * kVec<T>;
    if (vectors) {  // then the row's end is a vector's end too
      const bool inside = r < rows && c < cols;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                       static_cast<uint32_t>(__cvta_generic_to_shared(&to[r][c]))),
                   "l"(inside ? from + r * pitch + c : from), "r"(inside ? 16 : 0)
                   : "memory");
    } else {
      for (int j = c; j < c + kVec<T>; ++j) to[r][j] = r < rows && j < cols ? from[r * pitch + j] : T(0.0f);
    }
  }
}

// The tile's corner of a [rows][k] times b [k][cols], through a ring of stages filled ahead.
template <typename T, typename Tile>
__device__ void multiply(Tile& tile, Stage<T>* stages, const T* a, const T* b, int k, int64_t n, int rows,
                         int cols) {
  const int steps = (k + kTileK<T> - 1) / kTileK<T>;
  auto fetch = [&](int step) {
    if (step < steps) {
      Stage<T>& s = stages[step % KNOB_STAGES];
      const int k0 = step * kTileK<T>;
      load(s.a, a + k0, k, rows, k - k0);
      load(s.b, b + k0 * n, n, k - k0, cols);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int step = 0; step < KNOB_STAGES - 1; ++step) fetch(step);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(KNOB_STAGES - 2) : "memory");
    __syncthreads();  // this step's stage is there for all, and nobody reads the one that is refilled now
    fetch(step + KNOB_STAGES - 1);
    tile.multiply(stages[step % KNOB_STAGES]);
  }
  __syncthreads();
}

// c += the partial tiles of the other PEs, in the order of their distance. `boxes` is [n_pes][tiles] tiles.
template <typename T, int V>
__device__ void add_up(T* c, int64_t pitch, int rows, int cols, const T* boxes, int64_t tiles, int tile,
                       int pe, int n_pes) {
  struct alignas(sizeof(T) * V) Vector {
    T v[V];
  };
  for (int i = threadIdx.x * V; i < kTile; i += KNOB_THREADS * V) {
    const int row = i / kTileN, col = i % kTileN;
    if (row >= rows || col >= cols) continue;
    auto* to = reinterpret_cast<Vector*>(c + row * pitch + col);
    Vector out = *to;
    float sum[V];
    for (int j = 0; j < V; ++j) sum[j] = static_cast<float>(out.v[j]);
    for (int d = 1; d < n_pes; ++d) {
      const int64_t slot = (pe + d) % n_pes * tiles + tile;
      const auto part = *reinterpret_cast<const Vector*>(boxes + slot * kTile + i);
      for (int j = 0; j < V; ++j) sum[j] += static_cast<float>(part.v[j]);
    }
    for (int j = 0; j < V; ++j) out.v[j] = T(sum[j]);
    *to = out;
  }
}

// --- The kernel ---

template <typename T>
__global__ void __launch_bounds__(KNOB_THREADS)
    gemm_rs(const T* a, const T* b, T* c, int m, int n, int k, State s, int pe, int n_pes) {
  extern __shared__ __align__(16) char shared[];
  auto* stages = reinterpret_cast<Stage<T>*>(shared);
  using Tile = std::conditional_t<std::is_same_v<T, float>, FmaTile, MmaTile>;
  const int shard = m / n_pes, tiles_n = (n + kTileN - 1) / kTileN,
            tiles = (shard + kTileM - 1) / kTileM * tiles_n;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int64_t parity = (call & 1) * n_pes * tiles;
  T* outbox = static_cast<T*>(s.outbox) + parity * kTile;
  T* inbox = static_cast<T*>(s.inbox) + parity * kTile;
  uint64_t* ready = s.ready + parity;

  // First this block's share of the other PEs' tiles, without a wait in between ...
  for (int i = blockIdx.x; i < (n_pes - 1) * tiles; i += gridDim.x) {
    const int owner = (pe + 1 + i / tiles) % n_pes, t = i % tiles;
    const int row = t / tiles_n * kTileM, col = t % tiles_n * kTileN;
    T* mine = outbox + (int64_t{owner} * tiles + t) * kTile;
    Tile tile;
    multiply(tile, stages, a + (int64_t{owner} * shard + row) * k, b + col, k, n, min(kTileM, shard - row),
             min(kTileN, n - col));
    tile.store(mine, kTileN, kTileM, kTileN);  // zeros beyond the matrix's edge
    __syncthreads();                           // the whole tile is stored before any of it travels
    if (!KNOB_PULL) {
      nvshmemx_putmem_signal_block(inbox + (int64_t{pe} * tiles + t) * kTile, mine, kTile * sizeof(T),
                                   ready + pe * tiles + t, call, NVSHMEM_SIGNAL_SET, owner);
    } else if (threadIdx.x == 0) {
      __threadfence_system();
      nvshmemx_signal_op(ready + pe * tiles + t, call, NVSHMEM_SIGNAL_SET, owner);
    }
  }
  // ... then its share of my own tiles, each completed by the others' parts.
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int row = t / tiles_n * kTileM, col = t % tiles_n * kTileN;
    const int rows = min(kTileM, shard - row), cols = min(kTileN, n - col);
    T* mine = c + int64_t{row} * n + col;
    Tile tile;
    multiply(tile, stages, a + (int64_t{pe} * shard + row) * k, b + col, k, n, rows, cols);
    tile.store(mine, n, rows, cols);
    if (threadIdx.x < n_pes && threadIdx.x != pe) {
      nvshmem_signal_wait_until(ready + threadIdx.x * tiles + t, NVSHMEM_CMP_GE, call);
    }
    __syncthreads();  // my tile is stored, the others' have come
    if (KNOB_PULL) {
      for (int d = 1; d < n_pes; ++d) {
        const int src = (pe + d) % n_pes;
        nvshmemx_getmem_block(inbox + (int64_t{src} * tiles + t) * kTile,
                              outbox + (int64_t{pe} * tiles + t) * kTile, kTile * sizeof(T), src);
      }
      __syncthreads();
    }
    if (n % kVec<T> == 0 && reinterpret_cast<uintptr_t>(c) % 16 == 0) {
      add_up<T, kVec<T>>(mine, n, rows, cols, inbox, tiles, t, pe, n_pes);
    } else {
      add_up<T, 1>(mine, n, rows, cols, inbox, tiles, t, pe, n_pes);
    }
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- The candidate ---

template <typename T>
static int resident_blocks() {
  constexpr int kShared = KNOB_STAGES * sizeof(Stage<T>);
  int device = 0, sms = 0, per_sm = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(gemm_rs<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, gemm_rs<T>, KNOB_THREADS, kShared);
  return sms * per_sm;
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const bool f32 = launch.dtype == echolo::DType::kF32;
  const int64_t shard = launch.param("M") / launch.n_pes, n = launch.param("N");
  const int64_t tiles = (shard + kTileM - 1) / kTileM * ((n + kTileN - 1) / kTileN);
  const int64_t flags = 2 * launch.n_pes * tiles * sizeof(uint64_t);
  const int64_t boxes = 2 * launch.n_pes * tiles * kTile * (f32 ? 4 : 2);
  // Blocks wait for blocks of other PEs, so all must be resident at once.
  const int resident = f32 ? resident_blocks<float>() : resident_blocks<bf16>();
  s->blocks = static_cast<int>(std::min<int64_t>(launch.n_pes * tiles, resident));
  s->outbox = nvshmem_malloc(boxes);
  s->inbox = nvshmem_malloc(boxes);
  s->ready = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->ready, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody signals before every PE has cleared its flags
  return s;
}

template <typename T>
static void run(State* s, const echolo::Launch& launch, echolo::TensorList in, echolo::TensorList out,
                cudaStream_t stream) {
  const int m = static_cast<int>(in[0].shape[0]), k = static_cast<int>(in[0].shape[1]);
  const int n = static_cast<int>(out[0].shape[1]);
  gemm_rs<T><<<s->blocks, KNOB_THREADS, KNOB_STAGES * sizeof(Stage<T>), stream>>>(
      in[0].as<T>(), in[1].as<T>(), out[0].as<T>(), m, n, k, *s, launch.pe, launch.n_pes);
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  launch.dtype == echolo::DType::kF32 ? run<float>(s, launch, in, out, stream)
                                      : run<bf16>(s, launch, in, out, stream);
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // no peer still gets from this PE
  nvshmem_free(s->outbox);
  nvshmem_free(s->inbox);
  nvshmem_free(s->ready);
  cudaFree(s->calls);
  delete s;
}
