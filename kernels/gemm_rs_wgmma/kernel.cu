// GEMM + reduce-scatter in one persistent kernel, in bf16, on wgmma and TMA: rows of A @ B are summed over
// PEs, and PE r keeps the r-th part of them. Tiles of other PEs' rows come first, and a spare warp stores
// them into their owner's inbox; a PE's own tiles come last, and what has arrived for them is loaded while
// they are multiplied. README.md says why it is free of races.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <echolo/candidate.hpp>

#ifndef KNOB_TILE_N
#define KNOB_TILE_N 128
#endif
#ifndef KNOB_GROUPS
#define KNOB_GROUPS 2  // warpgroups that multiply, 64 rows of a tile each
#endif
#ifndef KNOB_STAGES
#define KNOB_STAGES 4  // shared-memory stages ahead of the multiplication
#endif
#ifndef KNOB_BAND
#define KNOB_BAND 8  // rows of tiles that blocks walk over together, for the L2 cache
#endif
using bf16 = __nv_bfloat16;

constexpr int kTileM = 64 * KNOB_GROUPS, kTileN = KNOB_TILE_N, kTileK = 64, kMaxPes = 8;
constexpr int kThreads = 128 * (1 + KNOB_GROUPS);
// A is read along K, B along N: a box of B is as wide as a swizzled row, 128 bytes at most.
constexpr int kBoxN = kTileN < 64 ? kTileN : 64, kBoxes = kTileN / kBoxN, kRowB = kBoxN * 2;
constexpr int kBytesA = kTileM * kTileK * 2, kBoxBytes = kTileK * kRowB, kBytesB = kBoxes * kBoxBytes;
constexpr int kStageBytes = kBytesA + kBytesB, kStagedRows = 64 * kRowB, kStagedBytes = kBoxes * kStagedRows;
constexpr int kShared = 1024 + KNOB_STAGES * kStageBytes + KNOB_GROUPS * kStagedBytes;
static_assert(kBytesA % 1024 == 0 && kBytesB % 1024 == 0 && kStagedBytes % 1024 == 0,
              "swizzles repeat each 1 KiB");

struct State {
  bf16* inbox;  // symmetric [2][n_pes][shard][N]: each PE's part of my rows, odd and even calls
  uint64_t*
      ready;  // symmetric [2][n_pes][tiles][KNOB_GROUPS]: last odd or even call whose part of a tile is there
  uint64_t* calls;  // device [blocks]: calls that this block has completed
  int blocks;
  bf16* peers_inbox[kMaxPes];  // of every PE, as this one addresses it
  uint64_t* peers_ready[kMaxPes];
  CUtensorMap inbox_map;
};

// --- Shared memory, barriers, copies ---

static __device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void barrier_init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t phase) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(phase)
        : "memory");
  } while (done == 0);
}

static __device__ __forceinline__ void load_box(uint32_t to, const CUtensorMap* map, int x, int y, int z,
                                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], "
      "[%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

static __device__ __forceinline__ void store_box(const CUtensorMap* map, int x, int y, int z, uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(x), "r"(y), "r"(z), "r"(from)
      : "memory");
}

// Where a byte of rows of kRowB bytes lies under the swizzle of that width.
static __device__ __forceinline__ uint32_t swizzled(uint32_t offset) {
  return offset ^ (offset >> 3 & (kRowB - 16));
}

// --- wgmma ---

// PTX ISA, "Matrix Descriptor Format": addresses and strides in 16 bytes.
static __device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride,
                                                      uint64_t swizzle) {
  return (address & 0x3ffffU) >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         swizzle << 62;
}

// d [64][kTileN] (+)= a [64][16] * b [16][kTileN]; A along K, B along N.
static __device__ __forceinline__ void multiply(float (&d)[kTileN / 2], uint64_t a, uint64_t b, int keep) {
#if KNOB_TILE_N == 32
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "%16, %17, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b), "r"(keep));
#elif KNOB_TILE_N == 64
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(keep));
#elif KNOB_TILE_N == 128
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(keep));
#elif KNOB_TILE_N == 256
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,"
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79,"
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111,"
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
        "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]),
        "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
        "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]),
        "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
        "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]),
        "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]),
        "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]),
        "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"(keep));
#else
#error KNOB_TILE_N must be 32, 64, 128 or 256
#endif
}

static __device__ __forceinline__ void multiply_stage(float (&d)[kTileN / 2], uint32_t a, uint32_t b,
                                                      bool first) {
  constexpr uint64_t kSwizzleB = kRowB == 128 ? 1 : 2;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < kTileK; k += 16) {
    multiply(d, descriptor(a + k * 2, 16, 1024, 1),
             descriptor(b + k * kRowB, kBoxBytes, 8 * kRowB, kSwizzleB), !first || k > 0);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Adds a 64 x kTileN tile in shared memory to the accumulators of a warpgroup.
static __device__ __forceinline__ void add_staged(float (&d)[kTileN / 2], uint32_t from, int warp, int lane) {
#pragma unroll
  for (int j = 0; j < kTileN / 8; j += 2) {
    uint32_t r[4];
    const int row = warp * 16 + lane % 16, column = (j + lane / 16) * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from + column / kBoxN * kStagedRows + swizzled(row * kRowB + column % kBoxN * 2))
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      __nv_bfloat162 pair;
      memcpy(&pair, &r[i], sizeof pair);
      d[j * 4 + i * 2] += __low2float(pair);
      d[j * 4 + i * 2 + 1] += __high2float(pair);
    }
  }
}

static __device__ __forceinline__ void stage_tile(const float (&d)[kTileN / 2], uint32_t to, int warp,
                                                  int lane) {
#pragma unroll
  for (int j = 0; j < kTileN / 8; j += 2) {  // two columns of 8 x 8 matrices, two rows of them each
    uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(d[j * 4 + i * 2], d[j * 4 + i * 2 + 1]);
      memcpy(&r[i], &pair, sizeof pair);
    }
    const int row = warp * 16 + lane % 16, column = (j + lane / 16) * 8;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     to + column / kBoxN * kStagedRows + swizzled(row * kRowB + column % kBoxN * 2)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  }
}

// Copies a 64 x kTileN tile from shared memory to a row-major matrix, of which `rows` x `columns` are left.
// Plain stores: through TMA, a burst to the peers would hold up the loads behind it.
static __device__ __forceinline__ void send_staged(bf16* to, uint32_t from, int lane, int pitch, int rows,
                                                   int columns) {
  constexpr int kPerRow = kTileN / 8;
#pragma unroll 4
  for (int i = lane; i < 64 * kPerRow; i += 32) {
    const int row = i / kPerRow, column = i % kPerRow * 8;
    if (row >= rows || column >= columns) continue;
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from + column / kBoxN * kStagedRows + swizzled(row * kRowB + column % kBoxN * 2))
                 : "memory");
    *reinterpret_cast<uint4*>(to + int64_t{row} * pitch + column) = v;
  }
}

// --- Tiles ---

struct Shape {
  int shard, n, k, pe, n_pes, tiles_m, tiles_n;
};

struct Tile {
  int owner, m, n, index;  // index: within the owner's rows
};

// Those of pe + 1, pe + 2, ... first, my own last; in bands of KNOB_BAND rows of tiles.
static __device__ __forceinline__ Tile tile_at(const Shape& s, int t) {
  const int per_shard = s.tiles_m * s.tiles_n, rest = t % per_shard;
  const int band = rest / (KNOB_BAND * s.tiles_n), first = band * KNOB_BAND;
  const int height = min(KNOB_BAND, s.tiles_m - first), within = rest - first * s.tiles_n;
  return {(s.pe + 1 + t / per_shard) % s.n_pes, first + within % height, within / height, rest};
}

// --- The kernel ---

__global__ void __launch_bounds__(kThreads, 1)
    gemm_rs_wgmma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                  const __grid_constant__ CUtensorMap c_map, const __grid_constant__ State s,
                  const Shape shape) {
  extern __shared__ char raw[];
  __shared__ uint64_t full[KNOB_STAGES], empty[KNOB_STAGES], came[KNOB_GROUPS], taken[KNOB_GROUPS],
      gone[KNOB_GROUPS];
  char* shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  const uint32_t stages = shared_address(shared), staged = stages + KNOB_STAGES * kStageBytes;
  const int group = threadIdx.x / 128, steps = (shape.k + kTileK - 1) / kTileK;
  const int per_shard = shape.tiles_m * shape.tiles_n, tiles = shape.n_pes * per_shard;
  const uint64_t call = s.calls[blockIdx.x] + 1;
  const int plane0 = static_cast<int>(call & 1) * shape.n_pes;
  if (threadIdx.x == 0) {
    for (int i = 0; i < KNOB_STAGES; ++i) {
      barrier_init(shared_address(&full[i]), 1);
      barrier_init(shared_address(&empty[i]), KNOB_GROUPS);
    }
    for (int i = 0; i < KNOB_GROUPS; ++i) {
      barrier_init(shared_address(&came[i]), 1);
      barrier_init(shared_address(&taken[i]), 1);
      barrier_init(shared_address(&gone[i]), 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  if (group == 0) {
    if (threadIdx.x == 0) {
      int stage = 0;
      uint32_t phase = 1;  // a fresh barrier counts as if its phase 1 had ended
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        const Tile tile = tile_at(shape, t);
        for (int step = 0; step < steps; ++step) {
          const uint32_t to = stages + stage * kStageBytes, barrier = shared_address(&full[stage]);
          barrier_wait(shared_address(&empty[stage]), phase);
          barrier_expect(barrier, kStageBytes);
          load_box(to, &a_map, step * kTileK, tile.m * kTileM, tile.owner, barrier);
          for (int box = 0; box < kBoxes; ++box) {
            load_box(to + kBytesA + box * kBoxBytes, &b_map, tile.n * kTileN + box * kBoxN, step * kTileK, 0,
                     barrier);
          }
          if (++stage == KNOB_STAGES) stage = 0, phase ^= 1;
        }
      }
    } else if (threadIdx.x >= 32 && threadIdx.x / 32 <= KNOB_GROUPS) {
      // One warp for the warpgroup `part`: sends what it computed of the peers' tiles, then fetches what they
      // computed of mine.
      const int part = threadIdx.x / 32 - 1, lane = threadIdx.x % 32;
      const uint32_t own = staged + part * kStagedBytes, barrier = shared_address(&came[part]);
      uint32_t phase = 0;
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        const Tile tile = tile_at(shape, t);
        const int row0 = tile.m * kTileM + part * 64;
        if (tile.owner != shape.pe) {
          asm volatile("bar.sync %0, 160;" ::"r"(4 + part) : "memory");  // the warpgroup has staged it
          bf16* to = s.peers_inbox[tile.owner] + (int64_t{plane0 + shape.pe} * shape.shard + row0) * shape.n +
                     tile.n * kTileN;
          send_staged(to, own, lane, shape.n, shape.shard - row0, shape.n - tile.n * kTileN);
          __syncwarp();
          if (lane == 0) {
            barrier_arrive(shared_address(&gone[part]));
            uint64_t* flag = s.peers_ready[tile.owner] +
                             ((plane0 + shape.pe) * int64_t{per_shard} + tile.index) * KNOB_GROUPS + part;
            asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(call) : "memory");
          }
          continue;
        }
        for (int d = 1; d < shape.n_pes && lane == 0; ++d, phase ^= 1) {
          const int source = (shape.pe + shape.n_pes - d) % shape.n_pes;
          const uint64_t* flag =
              s.ready + ((plane0 + source) * int64_t{per_shard} + tile.index) * KNOB_GROUPS + part;
          uint64_t there;
          do {
            asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(there) : "l"(flag) : "memory");
          } while (there < call);
          barrier_wait(shared_address(&taken[part]), phase);
          asm volatile("fence.proxy.async;" ::: "memory");
          barrier_expect(barrier, kStagedBytes);
          for (int box = 0; box < kBoxes; ++box) {
            load_box(own + box * kStagedRows, &s.inbox_map, tile.n * kTileN + box * kBoxN, row0,
                     plane0 + source, barrier);
          }
        }
      }
    }
  } else {
    const int part = group - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool leader = threadIdx.x % 128 == 0;
    const uint32_t own = staged + part * kStagedBytes;
    int stage = 0;
    uint32_t phase = 0, came_phase = 0, gone_phase = 0;
    bool sending = false;  // the tile before is one for a peer
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      const Tile tile = tile_at(shape, t);
      const bool mine = tile.owner == shape.pe;
      float d[kTileN / 2];
      int before = -1;
      for (int step = 0; step < steps; ++step) {
        const uint32_t from = stages + stage * kStageBytes;
        barrier_wait(shared_address(&full[stage]), phase);
        multiply_stage(d, from + part * 64 * kTileK * 2, from + kBytesA, step == 0);
        if (step == 0 && mine && leader) {
          asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the tile before has left
          if (shape.n_pes > 1) barrier_arrive(shared_address(&taken[part]));
        }
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (leader && before >= 0) barrier_arrive(shared_address(&empty[before]));
        before = stage;
        if (++stage == KNOB_STAGES) stage = 0, phase ^= 1;
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int i = 0; i < kTileN / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");
      if (leader) barrier_arrive(shared_address(&empty[before]));
      if (mine) {
        for (int i = 1; i < shape.n_pes; ++i, came_phase ^= 1) {
          barrier_wait(shared_address(&came[part]), came_phase);
          add_staged(d, own, warp, lane);
          if (i + 1 < shape.n_pes) {
            asm volatile("bar.sync %0, 128;" ::"r"(2 + part) : "memory");
            if (leader) barrier_arrive(shared_address(&taken[part]));
          }
        }
      }
      if (sending && !mine) {
        barrier_wait(shared_address(&gone[part]), gone_phase);
        gone_phase ^= 1;
      }
      sending = !mine;
      asm volatile("bar.sync %0, 128;" ::"r"(2 + part) : "memory");  // `own` is free for all
      stage_tile(d, own, warp, lane);
      if (!mine) {
        asm volatile("bar.arrive %0, 160;" ::"r"(4 + part) : "memory");
        continue;
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // TMA reads what this thread wrote
      asm volatile("bar.sync %0, 128;" ::"r"(2 + part) : "memory");
      if (leader) {
        for (int box = 0; box < kBoxes; ++box) {
          store_box(&c_map, tile.n * kTileN + box * kBoxN, tile.m * kTileM + part * 64, 0,
                    own + box * kStagedRows);
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
    if (leader) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncthreads();  // all threads have read calls[]
  if (threadIdx.x == 0) s.calls[blockIdx.x] = call;
}

// --- The candidate ---

// A row-major [planes][rows][columns] and the box that TMA moves.
static CUtensorMap make_map(const void* data, int64_t columns, int64_t rows, int64_t planes, int box_columns,
                            int box_rows) {
  static auto* encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  CUtensorMap map{};
  const cuuint64_t dims[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows),
                             static_cast<cuuint64_t>(planes)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(columns * 2),
                                static_cast<cuuint64_t>(rows * columns * 2)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(data), dims, strides, box, steps,
         CU_TENSOR_MAP_INTERLEAVE_NONE,
         box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  // A copy: the caller's slot for the result need not have the alignment that the encoder asks for.
  return static_cast<const CUtensorMap&>(map);
}

extern "C" State* candidate_create(const echolo::Launch& launch) {
  auto* s = new State{};
  const int64_t shard = launch.param("M") / launch.n_pes, n = launch.param("N");
  const int64_t tiles = (shard + kTileM - 1) / kTileM * ((n + kTileN - 1) / kTileN);
  int device = 0, sms = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(gemm_rs_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  // One block fits a multiprocessor; blocks wait for blocks of other PEs, so all must be resident at once.
  s->blocks = static_cast<int>(std::min<int64_t>(launch.n_pes * tiles, sms));
  const int64_t flags = 2 * launch.n_pes * tiles * KNOB_GROUPS * sizeof(uint64_t);
  s->inbox = static_cast<bf16*>(nvshmem_malloc(2 * launch.n_pes * shard * n * sizeof(bf16)));
  s->ready = static_cast<uint64_t*>(nvshmem_malloc(flags));
  cudaMalloc(&s->calls, s->blocks * sizeof(uint64_t));
  cudaMemset(s->ready, 0, flags);
  cudaMemset(s->calls, 0, s->blocks * sizeof(uint64_t));
  for (int q = 0; q < launch.n_pes; ++q) {
    s->peers_ready[q] = static_cast<uint64_t*>(nvshmem_ptr(s->ready, q));
    s->peers_inbox[q] = static_cast<bf16*>(nvshmem_ptr(s->inbox, q));
  }
  s->inbox_map = make_map(s->inbox, n, shard, 2 * launch.n_pes, kBoxN, 64);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // nobody signals before every PE has cleared its flags
  return s;
}

extern "C" void candidate_run(State* s, const echolo::Launch& launch, echolo::TensorList in,
                              echolo::TensorList out, cudaStream_t stream) {
  const int k = static_cast<int>(in[0].shape[1]);
  const int shard = static_cast<int>(out[0].shape[0]), n = static_cast<int>(out[0].shape[1]);
  const Shape shape{
      shard, n, k, launch.pe, launch.n_pes, (shard + kTileM - 1) / kTileM, (n + kTileN - 1) / kTileN};
  gemm_rs_wgmma<<<s->blocks, kThreads, kShared, stream>>>(
      make_map(in[0].data, k, shard, launch.n_pes, kTileK, kTileM),
      make_map(in[1].data, n, k, 1, kBoxN, kTileK), make_map(out[0].data, n, shard, 1, kBoxN, 64), *s, shape);
}

extern "C" void candidate_destroy(State* s) {
  cudaDeviceSynchronize();
  nvshmem_barrier_all();  // no peer still stores into this PE's inbox
  nvshmem_free(s->inbox);
  nvshmem_free(s->ready);
  cudaFree(s->calls);
  delete s;
}
