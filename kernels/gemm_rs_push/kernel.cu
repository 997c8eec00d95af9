// GEMM + reduce-scatter for small sizes, in bf16: rows of A @ B are summed over PEs, and PE r keeps the r-th
// part of them, without a fence, a flag or a barrier among PEs. A block multiplies tiles of other PEs' rows
// first and stores them into their owner's inbox, which held a pattern that is never sent: a word that
// differs from it has come. README.md says why it is free of races.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>

#ifndef KNOB_TILE_M
#define KNOB_TILE_M 32
#endif
#ifndef KNOB_TILE_N
#define KNOB_TILE_N 32
#endif
#ifndef KNOB_WARP_M
#define KNOB_WARP_M 16  // rows of a tile that one warp multiplies; the other warps share K
#endif
#ifndef KNOB_THREADS
#define KNOB_THREADS 256
#endif
#ifndef KNOB_AHEAD
#define KNOB_AHEAD 4  // windows of 32 along K that a warp loads at once
#endif
#ifndef KNOB_PER_SM
#define KNOB_PER_SM 1  // blocks of a multiprocessor
#endif

using bf16 = __nv_bfloat16;

constexpr int kTileM = KNOB_TILE_M, kTileN = KNOB_TILE_N, kThreads = KNOB_THREADS, kAhead = KNOB_AHEAD;
constexpr int kWindow = 32, kMaxPes = 8, kBuffers = 4;
constexpr int kWarpsM = kTileM / KNOB_WARP_M, kWarpsK = kThreads / 32 / kWarpsM;
constexpr int kFragments = KNOB_WARP_M / 16,
              kRows = 2 * kFragments;  // rows of A that a thread holds parts of
// Pitches that keep the eight rows of a matrix, or of a fragment, in different banks.
constexpr int kPitchB = kTileN * 2 + 16, kPitchSum = kTileN + 8;
constexpr int kSumBytes = kWarpsK * kTileM * kPitchSum * 4;
static_assert(kWarpsM * kWarpsK * 32 == kThreads && kTileM % KNOB_WARP_M == 0 && kTileN % 16 == 0,
              "warps share a tile evenly");

struct State {
  bf16* inbox;  // symmetric [4][n_pes][shard][N]: each PE's part of my rows, by the call's number modulo 4
  uint64_t* calls;  // device [blocks]: calls that this block has completed
  int blocks_m, blocks_n, shared_bytes;
  bf16* peers_inbox[kMaxPes];  // of every PE, as this one addresses it
};

struct Shape {
  int shard, n, k, pe, n_pes, tiles_m, tiles_n, windows;
};

// --- Words that say themselves that they have come ---

constexpr uint32_t kNothing = 0xffffffffU;  // a 64-bit word of ones (four NaNs) stands for "not yet here"

static __device__ __forceinline__ bool missing(uint2 v) { return (v.x & v.y) == kNothing; }

// Four NaNs of that pattern travel as four other NaNs: no sum tells them apart.
static __device__ __forceinline__ void send_word(bf16* to, uint2 v) {
  const uint64_t word = (missing(v) ? 0x7fffffffU : v.x) | static_cast<uint64_t>(v.y) << 32;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

static __device__ __forceinline__ uint2 wait_word(const bf16* from) {
  uint2 v;
  do {
    uint64_t word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    v = make_uint2(static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32));
  } while (missing(v));
  return v;
}

static __device__ __forceinline__ void clear_words(uint4* to) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %1};" ::"l"(to), "l"(~uint64_t{0}) : "memory");
}

// --- B in shared memory ---

static __device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// A thread loads 16 bytes of a row of A, k = 8t .. 8t + 7 of a window, where mma wants 2t, 2t + 1, 2t + 8 and
// 2t + 9 of each 16. A product does not depend on the order along K, so B's rows are put in the order in
// which A's columns arrive: k = 8t + 2j + e goes to row 8j + 2t + e.
static __device__ __forceinline__ void load_slab(uint32_t slab, const bf16* b, int column0, const Shape& s) {
  constexpr int kPerRow = kTileN / 8;
  for (int i = threadIdx.x; i < s.windows * kWindow * kPerRow; i += kThreads) {
    const int k = i / kPerRow, column = column0 + i % kPerRow * 8;
    const int row = k / kWindow * kWindow + k % 8 / 2 * 8 + k % kWindow / 8 * 2 + k % 2;
    const bool inside = k < s.k && column < s.n;
    const bf16* from = inside ? b + int64_t{k} * s.n + column : b;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(slab + row * kPitchB + i % kPerRow * 16),
        "l"(from), "r"(inside ? 16 : 0)
        : "memory");
  }
}

// --- The product ---

static __device__ __forceinline__ void multiply(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A warp's part of a tile: its rows of A, every kWarpsK-th window of K.
static __device__ __forceinline__ void multiply_rows(float (&d)[kFragments][kTileN / 8][4], const bf16* a,
                                                     int row0, uint32_t slab, bool& slab_here,
                                                     const Shape& s) {
  const int lane = threadIdx.x % 32, warp_k = threadIdx.x / 32 / kWarpsM;
  for (int base = 0; base < s.windows; base += kWarpsK * kAhead) {
    const int first = base + warp_k;
    uint4 v[kAhead][kRows];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int k = (first + i * kWarpsK) * kWindow + lane % 4 * 8, row = row0 + r * 8 + lane / 4;
        v[i][r] = make_uint4(0, 0, 0, 0);
        if (k < s.k && row < s.shard) v[i][r] = *reinterpret_cast<const uint4*>(a + int64_t{row} * s.k + k);
      }
    }
    if (!slab_here) {  // the first loads of A travel beside those of B
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
      slab_here = true;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int window = first + i * kWarpsK;
      if (window >= s.windows) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t rows = slab + (window * kWindow + half * 16 + lane % 16) * kPitchB + lane / 16 * 16;
#pragma unroll
        for (int j = 0; j < kTileN / 16; ++j) {
          uint32_t b[4];
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                       : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                       : "r"(rows + j * 32)
                       : "memory");
#pragma unroll
          for (int f = 0; f < kFragments; ++f) {
            const uint4 upper = v[i][2 * f], lower = v[i][2 * f + 1];
            const uint32_t a0 = half == 0 ? upper.x : upper.z, a2 = half == 0 ? upper.y : upper.w;
            const uint32_t a1 = half == 0 ? lower.x : lower.z, a3 = half == 0 ? lower.y : lower.w;
            multiply(d[f][2 * j], a0, a1, a2, a3, b[0], b[1]);
            multiply(d[f][2 * j + 1], a0, a1, a2, a3, b[2], b[3]);
          }
        }
      }
    }
  }
}

// Adds up what the warps have along K. A tile of a peer's rows goes to `to`, a part of its inbox; to one of
// mine what the peers sent to `from` is added, and it goes to `to`, a part of C.
static __device__ __forceinline__ void finish_tile(const float (&d)[kFragments][kTileN / 8][4], float* sums,
                                                   bf16* to, const bf16* from, int row0, int column0,
                                                   const Shape& s) {
  const int lane = threadIdx.x % 32, warp_m = threadIdx.x / 32 % kWarpsM, warp_k = threadIdx.x / 32 / kWarpsM;
  __syncthreads();  // the sums of the tile before have been read
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) {
      float* part = sums + (warp_k * kTileM + warp_m * KNOB_WARP_M + f * 16 + lane / 4) * kPitchSum + j * 8 +
                    lane % 4 * 2;
      *reinterpret_cast<float2*>(part) = make_float2(d[f][j][0], d[f][j][1]);
      *reinterpret_cast<float2*>(part + 8 * kPitchSum) = make_float2(d[f][j][2], d[f][j][3]);
    }
  }
  __syncthreads();
  constexpr int kPerRow = kTileN / 4;
  for (int i = threadIdx.x; i < kTileM * kPerRow; i += kThreads) {
    const int row = i / kPerRow, column = i % kPerRow * 4;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int w = 0; w < kWarpsK; ++w) {
      const float4 part = *reinterpret_cast<const float4*>(sums + (w * kTileM + row) * kPitchSum + column);
      sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    if (row0 + row >= s.shard || column0 + column >= s.n) continue;
    const int64_t at = int64_t{row0 + row} * s.n + column0 + column;
    for (int p = 1; p < s.n_pes && from != nullptr; ++p) {
      const int source = (s.pe + s.n_pes - p) % s.n_pes;
      const uint2 word = wait_word(from + int64_t{source} * s.shard * s.n + at);
      __nv_bfloat162 pairs[2];
      memcpy(pairs, &word, sizeof word);
      sum.x += __low2float(pairs[0]), sum.y += __high2float(pairs[0]);
      sum.z += __low2float(pairs[1]), sum.w += __high2float(pairs[1]);
    }
    const __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(sum.x, sum.y),
                                     __floats2bfloat162_rn(sum.z, sum.w)};
    uint2 out;
    memcpy(&out, pairs, sizeof out);
    if (from == nullptr) {
      send_word(to + at, out);
    } else {
      *reinterpret_cast<uint2*>(to + at) = out;
    }
  }
}

// --- The kernel ---

__global__ void __launch_bounds__(kThreads, KNOB_PER_SM)
    gemm_rs_push(const bf16* a, const bf16* b, bf16* c, const __grid_constant__ State s, const Shape shape) {
  extern __shared__ char shared[];
  const uint32_t slab = shared_address(shared);
  auto* sums = reinterpret_cast<float*>(shared + shape.windows * kWindow * kPitchB);
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int64_t part = int64_t{shape.shard} * shape.n;  // elements of one PE's part of an inbox
  const int64_t plane0 = int64_t(call % kBuffers) * shape.n_pes;
  bool cleared = shape.n_pes == 1;
  for (int tile_n = blockIdx.x % s.blocks_n; tile_n < shape.tiles_n; tile_n += s.blocks_n) {
    if (tile_n >= s.blocks_n) __syncthreads();  // the slab before has been read
    load_slab(slab, b, tile_n * kTileN, shape);
    bool slab_here = false;
    // Rows of pe + 1, pe + 2, ... first, mine last.
    for (int t = blockIdx.x / s.blocks_n; t < shape.n_pes * shape.tiles_m; t += s.blocks_m) {
      const int owner = (shape.pe + 1 + t / shape.tiles_m) % shape.n_pes, row0 = t % shape.tiles_m * kTileM;
      const bool mine = owner == shape.pe;
      float d[kFragments][kTileN / 8][4] = {};
      multiply_rows(d, a + int64_t{owner} * shape.shard * shape.k,
                    row0 + threadIdx.x / 32 % kWarpsM * KNOB_WARP_M, slab, slab_here, shape);
      finish_tile(d, sums, mine ? c : s.peers_inbox[owner] + (plane0 + shape.pe) * part,
                  mine ? s.inbox + plane0 * part : nullptr, row0, tile_n * kTileN, shape);
      if (cleared) continue;
      cleared = true;
      // What the call after the next one will receive into; it was read two calls ago.
      const int64_t plane2 = int64_t((call + 2) % kBuffers) * shape.n_pes;
      const int units = static_cast<int>(part / 8);
      for (int p = 1; p < shape.n_pes; ++p) {
        auto* to = reinterpret_cast<uint4*>(s.inbox + (plane2 + (shape.pe + p) % shape.n_pes) * part);
        for (int u = blockIdx.x * kThreads + threadIdx.x; u < units; u += gridDim.x * kThreads) {
          clear_words(to + u);
        }
      }
    }
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- The candidate ---

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const int64_t shard = launch.param("M") / launch.n_pes, n = launch.param("N"), k = launch.param("K");
  const int64_t tiles_m = (shard + kTileM - 1) / kTileM, tiles_n = (n + kTileN - 1) / kTileN;
  int device = 0, sms = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  const int64_t slab = (k + kWindow - 1) / kWindow * kWindow * kPitchB;
  s->shared_bytes = static_cast<int>(slab + kSumBytes);
  cudaFuncSetAttribute(gemm_rs_push, cudaFuncAttributeMaxDynamicSharedMemorySize, s->shared_bytes);
  // Blocks wait for blocks of other PEs, so all must be resident at once.
  int per_sm = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, gemm_rs_push, kThreads, s->shared_bytes);
  const int resident = sms * std::min(per_sm, KNOB_PER_SM);
  s->blocks_n = static_cast<int>(std::min<int64_t>(tiles_n, resident));
  s->blocks_m = static_cast<int>(std::min<int64_t>(launch.n_pes * tiles_m, resident / s->blocks_n));
  const int blocks = s->blocks_n * s->blocks_m;
  const int64_t bytes = kBuffers * launch.n_pes * shard * n * sizeof(bf16);
  s->inbox = static_cast<bf16*>(nvshmem_malloc(bytes));
  cudaMalloc(&s->calls, blocks * sizeof(uint64_t));
  cudaMemset(s->inbox, 0xff, bytes);
  cudaMemset(s->calls, 0, blocks * sizeof(uint64_t));
  for (int q = 0; q < launch.n_pes; ++q) {
    s->peers_inbox[q] = static_cast<bf16*>(nvshmem_ptr(s->inbox, q));
  }
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody sends before every PE has cleared its memory
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int k = static_cast<int>(in[0].shape[1]);
  const int shard = static_cast<int>(out[0].shape[0]), n = static_cast<int>(out[0].shape[1]);
  const Shape shape{shard,
                    n,
                    k,
                    launch.pe,
                    launch.n_pes,
                    (shard + kTileM - 1) / kTileM,
                    (n + kTileN - 1) / kTileN,
                    (k + kWindow - 1) / kWindow};
  gemm_rs_push<<<s->blocks_m * s->blocks_n, kThreads, s->shared_bytes, stream>>>(
      in[0].as<bf16>(), in[1].as<bf16>(), out[0].as<bf16>(), *s, shape);
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // no peer still stores into this PE's memory
  nvshmem_free(s->inbox);
  cudaFree(s->calls);
  delete s;
}
