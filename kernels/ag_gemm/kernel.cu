// All-gather + GEMM in one kernel: C = all_gather(A) @ B. The first blocks move A's rows between PEs, chunk
// by chunk; the others multiply tile by tile, starting with the rows that are already here, and wait for a
// chunk's flag only when they come to it. bf16 goes through the tensor cores, f32 through FMA.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>
#include <type_traits>

#ifndef KNOB_PULL
#define KNOB_PULL 0  // 0: owners put their rows into the peers' memory; 1: PEs get them from the owners
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
#ifndef KNOB_COMM_BLOCKS
#define KNOB_COMM_BLOCKS 8
#endif
#ifndef KNOB_CHUNK
#define KNOB_CHUNK 1  // tiles of rows that travel under one flag
#endif

constexpr int kTileM = KNOB_TILE_M, kTileN = KNOB_TILE_N, kChunkRows = KNOB_CHUNK * KNOB_TILE_M;
using bf16 = __nv_bfloat16;

struct State {
  void* gathered;     // symmetric [2][M][K]: the peers' rows of A, for odd and for even calls
  void* staged;       // symmetric [2][M / n_pes][K]: this PE's own rows, where peers get them (pull only)
  uint64_t* arrived;  // symmetric [2][n_pes][chunks]: last odd or even call whose chunk is in `gathered`
  uint64_t* ready;    // symmetric [2][n_pes][chunks]: last odd or even call whose chunk is staged (pull only)
  uint64_t* calls;    // device [blocks]: calls that this block has completed
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

template <typename V>
__device__ void copy(void* to, const void* from, int64_t count) {
  for (int64_t i = threadIdx.x; i < count; i += KNOB_THREADS)
    static_cast<V*>(to)[i] = static_cast<const V*>(from)[i];
}

// --- The kernel ---

template <typename T>
__global__ void __launch_bounds__(KNOB_THREADS)
    ag_gemm(const T* a, const T* b, T* c, int m, int n, int k, State s, int pe, int n_pes) {
  extern __shared__ __align__(16) char shared[];
  const int shard = m / n_pes, chunks = (shard + kChunkRows - 1) / kChunkRows;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int64_t parity = call & 1, flags = parity * n_pes * chunks;
  uint64_t *arrived = s.arrived + flags, *ready = s.ready + flags;
  T* gathered = static_cast<T*>(s.gathered) + parity * m * k;
  auto rows_of = [&](int chunk) { return min(kChunkRows, shard - chunk * kChunkRows); };
  auto offset = [&](int src, int chunk) { return (int64_t{src} * shard + int64_t{chunk} * kChunkRows) * k; };

  if (blockIdx.x < KNOB_COMM_BLOCKS && !KNOB_PULL) {
    for (int i = blockIdx.x; i < (n_pes - 1) * chunks; i += KNOB_COMM_BLOCKS) {
      const int chunk = i % chunks, to = (pe + 1 + i / chunks) % n_pes;
      nvshmemx_putmem_signal_block(gathered + offset(pe, chunk), a + offset(0, chunk),
                                   int64_t{rows_of(chunk)} * k * sizeof(T), arrived + pe * chunks + chunk,
                                   call, NVSHMEM_SIGNAL_SET, to);
    }
  } else if (blockIdx.x < KNOB_COMM_BLOCKS) {
    T* staged = static_cast<T*>(s.staged) + parity * shard * k;
    for (int chunk = blockIdx.x; chunk < chunks; chunk += KNOB_COMM_BLOCKS) {
      const int64_t from = offset(0, chunk), elements = int64_t{rows_of(chunk)} * k;
      if (reinterpret_cast<uintptr_t>(a) % 16 == 0 && k % kVec<T> == 0) {
        copy<uint4>(staged + from, a + from, elements / kVec<T>);
      } else {
        copy<T>(staged + from, a + from, elements);
      }
      __syncthreads();
      if (threadIdx.x < n_pes && threadIdx.x != pe) {
        __threadfence_system();  // the whole block's stores come before the signal
        nvshmemx_signal_op(ready + pe * chunks + chunk, call, NVSHMEM_SIGNAL_SET, threadIdx.x);
      }
    }
    for (int i = blockIdx.x; i < (n_pes - 1) * chunks; i += KNOB_COMM_BLOCKS) {
      const int chunk = i % chunks, src = (pe + n_pes - 1 - i / chunks) % n_pes;
      if (threadIdx.x == 0) nvshmem_signal_wait_until(ready + src * chunks + chunk, NVSHMEM_CMP_GE, call);
      __syncthreads();
      nvshmemx_getmem_block(gathered + offset(src, chunk), staged + offset(0, chunk),
                            int64_t{rows_of(chunk)} * k * sizeof(T), src);
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence_system();
        nvshmemx_signal_op(arrived + src * chunks + chunk, call, NVSHMEM_SIGNAL_SET, pe);
      }
    }
  } else {
    const int tiles_m = (shard + kTileM - 1) / kTileM, tiles_n = (n + kTileN - 1) / kTileN;
    for (int t = blockIdx.x - KNOB_COMM_BLOCKS; t < n_pes * tiles_m * tiles_n;
         t += gridDim.x - KNOB_COMM_BLOCKS) {
      // My own rows first, then those of pe - 1, pe - 2, ...: the order in which they come.
      const int src = (pe + n_pes - t / (tiles_m * tiles_n)) % n_pes;
      const int row = t / tiles_n % tiles_m * kTileM, col = t % tiles_n * kTileN;
      if (src != pe && threadIdx.x == 0) {
        nvshmem_signal_wait_until(arrived + src * chunks + row / kChunkRows, NVSHMEM_CMP_GE, call);
      }
      __syncthreads();
      const T* rows_a = src == pe ? a : gathered + offset(src, 0);
      const int rows = min(kTileM, shard - row), cols = min(kTileN, n - col);
      std::conditional_t<std::is_same_v<T, float>, FmaTile, MmaTile> tile;
      multiply(tile, reinterpret_cast<Stage<T>*>(shared), rows_a + int64_t{row} * k, b + col, k, n, rows,
               cols);
      tile.store(c + (int64_t{src} * shard + row) * n + col, n, rows, cols);
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
  cudaFuncSetAttribute(ag_gemm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, ag_gemm<T>, KNOB_THREADS, kShared);
  return sms * per_sm;
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const bool f32 = launch.dtype == echolo::DType::kF32;
  const int64_t m = launch.param("M"), n = launch.param("N"), k = launch.param("K"), shard = m / launch.n_pes;
  const int64_t flags = 2 * launch.n_pes * ((shard + kChunkRows - 1) / kChunkRows) * sizeof(uint64_t);
  const int64_t tiles = launch.n_pes * ((shard + kTileM - 1) / kTileM) * ((n + kTileN - 1) / kTileN);
  // Blocks wait for each other and for other PEs, so all must be resident at once.
  const int resident = f32 ? resident_blocks<float>() : resident_blocks<bf16>();
  s->blocks = static_cast<int>(std::min<int64_t>(KNOB_COMM_BLOCKS + tiles, resident));
  s->gathered = nvshmem_malloc(2 * m * k * (f32 ? 4 : 2));
  if (KNOB_PULL) s->staged = nvshmem_malloc(2 * shard * k * (f32 ? 4 : 2));
  s->arrived = static_cast<uint64_t*>(nvshmem_malloc(flags));
  s->ready = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->arrived, 0, flags);
  cudaMemset(s->ready, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody signals before every PE has cleared its flags
  return s;
}

template <typename T>
static void run(State* s, const echolo::Launch& launch, echolo::TensorList in, echolo::TensorList out,
                cudaStream_t stream) {
  const int m = static_cast<int>(out[0].shape[0]), n = static_cast<int>(out[0].shape[1]);
  const int k = static_cast<int>(in[0].shape[1]);
  ag_gemm<T><<<s->blocks, KNOB_THREADS, KNOB_STAGES * sizeof(Stage<T>), stream>>>(
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
  nvshmem_free(s->gathered);
  if (KNOB_PULL) nvshmem_free(s->staged);
  nvshmem_free(s->arrived);
  nvshmem_free(s->ready);
  cudaFree(s->calls);
  delete s;
}
