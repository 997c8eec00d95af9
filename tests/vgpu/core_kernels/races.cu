// One rule of order a kernel: what the rule orders, and what is left without it. Flags are inline PTX, so
// that order and scope are exactly what is written here.
#include <cooperative_groups.h>

#include <cstdint>

namespace cg = cooperative_groups;

static __device__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
static __device__ void init_barrier(std::uint64_t* bar, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}
static __device__ void arrive(std::uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}
static __device__ void arrive_expect(std::uint64_t* bar, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}
static __device__ void wait_parity(std::uint64_t* bar, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra WAIT;\n"
      "DONE:\n}" ::"r"(shared_address(bar)),
      "r"(parity)
      : "memory");
}
#define STORE(form, address, value) asm volatile("st." form ".s32 [%0], %1;" ::"l"(address), "r"(value) : "memory")
#define LOAD(form, result, address) asm volatile("ld." form ".s32 %0, [%1];" : "=r"(result) : "l"(address) : "memory")
#define FENCE(form) asm volatile("fence." form ";" ::: "memory")

// ---- one block: 128 threads, `mode` leaves the edge out ----

extern "C" __global__ void bar_sync(int* out, int without) {
  __shared__ int tile[128];
  tile[threadIdx.x] = threadIdx.x;
  if (!without) __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
extern "C" __global__ void bar_sync_before_overwriting(int* out, int without) {
  __shared__ int tile[128];
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = i;
    __syncthreads();
    sum += tile[127 - threadIdx.x];
    if (!without) __syncthreads();
  }
  out[threadIdx.x] = sum;
}
extern "C" __global__ void warp_barrier(int* out, int without) {
  __shared__ int tile[128];
  tile[threadIdx.x] = threadIdx.x;
  if (!without) __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
// Barrier 1 is of the first two warps; `without`: the third reads as well.
extern "C" __global__ void named_barrier(int* out, int without) {
  __shared__ int tile[64];
  if (threadIdx.x < 64) {
    tile[threadIdx.x] = threadIdx.x;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = tile[63 - threadIdx.x];
  } else if (without && threadIdx.x < 96) {
    __nanosleep(100000);
    out[threadIdx.x] = tile[threadIdx.x - 64];
  }
}
extern "C" __global__ void arrive_and_wait(int* out, int without) {
  __shared__ int tile[128];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) init_barrier(&bar, 128);
  __syncthreads();
  tile[threadIdx.x] = threadIdx.x;
  arrive(&bar);
  if (!without) wait_parity(&bar, 0);
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
extern "C" __global__ void barrier_is_made(int* out, int without) {
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 96) init_barrier(&bar, 32);
  if (!without) __syncthreads();
  if (without) __nanosleep(100000);
  if (threadIdx.x < 32) {
    arrive(&bar);
    wait_parity(&bar, 0);
  }
  out[threadIdx.x] = 1;
}

// ---- asynchronous copies: 64 threads ----

extern "C" __global__ void bulk_load(const int* in, int* out, int without) {
  __shared__ alignas(16) int tile[64];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) init_barrier(&bar, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect(&bar, 256);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
                     shared_address(tile)),
                 "l"(in), "r"(shared_address(&bar))
                 : "memory");
  }
  if (without && threadIdx.x >= 32) {
    __nanosleep(100000);
    out[threadIdx.x] = tile[threadIdx.x];
  }
  wait_parity(&bar, 0);
  if (!without) out[threadIdx.x] = tile[threadIdx.x];
}
// The tile is loaded twice; `without`: before everybody has read it.
extern "C" __global__ void bulk_load_over_readers(const int* in, int* out, int without) {
  __shared__ alignas(16) int tile[64];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) init_barrier(&bar, 1);
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      arrive_expect(&bar, 256);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
                       shared_address(tile)),
                   "l"(in), "r"(shared_address(&bar))
                   : "memory");
    }
    wait_parity(&bar, round);
    sum += tile[threadIdx.x];
    if (!without) __syncthreads();
  }
  out[threadIdx.x] = sum;
}
extern "C" __global__ void bulk_store(int* out, int without) {
  __shared__ alignas(16) int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(shared_address(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    if (!without) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncthreads();
  tile[threadIdx.x] = -1;
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
extern "C" __global__ void proxy_fence(int* out, int without) {
  __shared__ alignas(16) int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  if (!without) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(shared_address(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// ---- clusters of two blocks, 32 threads each ----

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_barrier(int* out, int without) {
  __shared__ int tile[32];
  cg::cluster_group cluster = cg::this_cluster();
  tile[threadIdx.x] = blockIdx.x * 32 + threadIdx.x;
  if (!without) {
    cluster.sync();
  } else {
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
  }
  out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1)[threadIdx.x];
  cluster.sync();
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_fence_then_relaxed(int* out, int without) {
  __shared__ int tile[32];
  cg::cluster_group cluster = cg::this_cluster();
  tile[threadIdx.x] = blockIdx.x * 32 + threadIdx.x;
  if (!without) FENCE("acq_rel.cluster");
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
  out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1)[threadIdx.x];
  cluster.sync();
}
// A flag in global memory at cluster scope: mode 0 within a cluster, 1 across two of them (four blocks).
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_scope(int* data, int* flag, int* out, int across) {
  const unsigned reader = across ? 2 : 1;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 42;
    STORE("release.cluster.global", flag, 1);
  } else if (blockIdx.x == reader) {
    int seen = 0;
    while (seen == 0) LOAD("acquire.cluster.global", seen, flag);
    *out = *data;
  }
}

// ---- two blocks of one thread: block 0 writes data, then the flag ----

#define PASS(name, write, read, after)                               \
  extern "C" __global__ void name(int* data, int* flag, int* out) {  \
    if (blockIdx.x == 0) {                                           \
      *data = 42;                                                    \
      write;                                                         \
    } else {                                                         \
      int seen = 0;                                                  \
      do {                                                           \
        read;                                                        \
      } while (seen == 0);                                           \
      after;                                                         \
      *out = *data;                                                  \
    }                                                                \
  }
PASS(release_acquire_gpu, STORE("release.gpu.global", flag, 1), LOAD("acquire.gpu.global", seen, flag), )
PASS(release_acquire_sys, STORE("release.sys.global", flag, 1), LOAD("acquire.sys.global", seen, flag), )
PASS(fences, FENCE("acq_rel.gpu"); STORE("relaxed.gpu.global", flag, 1), LOAD("relaxed.gpu.global", seen, flag),
     FENCE("acq_rel.gpu"))
PASS(fence_and_volatile, __threadfence(); *(volatile int*)flag = 1, seen = *(volatile int*)flag, __threadfence())
PASS(atomics, __threadfence(); atomicExch(flag, 1), seen = atomicAdd(flag, 0), __threadfence())
PASS(relaxed_write, STORE("relaxed.gpu.global", flag, 1), LOAD("acquire.gpu.global", seen, flag), )
PASS(relaxed_read, STORE("release.gpu.global", flag, 1), LOAD("relaxed.gpu.global", seen, flag), )
PASS(volatile_read, STORE("release.gpu.global", flag, 1), seen = *(volatile int*)flag, )
PASS(plain_read, STORE("release.gpu.global", flag, 1), LOAD("global", seen, flag), )
PASS(release_of_a_block, STORE("release.cta.global", flag, 1), LOAD("acquire.gpu.global", seen, flag), )
PASS(acquire_of_a_block, STORE("release.gpu.global", flag, 1), LOAD("acquire.cta.global", seen, flag), )
PASS(fence_of_a_block, FENCE("acq_rel.cta"); STORE("relaxed.gpu.global", flag, 1),
     LOAD("acquire.gpu.global", seen, flag), )
PASS(part_of_a_word, asm volatile("st.release.gpu.global.u8 [%0], %1;" ::"l"(flag), "r"(1) : "memory"),
     LOAD("acquire.gpu.global", seen, flag), )

// Three blocks, each released by the one before: causality goes on.
extern "C" __global__ void chain(int* data, int* flag, int* out) {
  int seen = 0;
  if (blockIdx.x == 0) {
    *data = 42;
    STORE("release.gpu.global", flag, 1);
  } else if (blockIdx.x == 1) {
    while (seen == 0) LOAD("acquire.gpu.global", seen, flag);
    STORE("release.gpu.global", flag + 1, 1);
  } else {
    while (seen == 0) LOAD("acquire.gpu.global", seen, flag + 1);
    *out = *data;
  }
}
// All 64 threads write; thread 0 releases. `without`: the block's barrier before that.
extern "C" __global__ void release_of_all(int* data, int* flag, int* out, int without) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    if (!without) __syncthreads();
    if (threadIdx.x == 0) STORE("release.gpu.global", flag, 1);
  } else {
    if (threadIdx.x == 0) {
      int seen = 0;
      while (seen == 0) LOAD("acquire.gpu.global", seen, flag);
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];
  }
}
extern "C" __global__ void grid_barrier(int* data, int* out, int without) {
  data[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (!without) cg::this_grid().sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = data[(gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x];
}

// ---- strong accesses that meet without a flag ----

extern "C" __global__ void counters(int* word) { atomicAdd(word, 1); }
extern "C" __global__ void counters_of_blocks(int* word) { atomicAdd_block(word, 1); }
extern "C" __global__ void counters_of_two_widths(int* word) {
  if (blockIdx.x % 2 == 0) {
    atomicAdd(word, 1);
  } else {
    atomicAdd(reinterpret_cast<unsigned long long*>(word), 1ULL);
  }
}
extern "C" __global__ void counter_and_plain_write(int* word) {
  if (blockIdx.x == 0) {
    *word = 0;
  } else {
    atomicAdd(word, 1);
  }
}
extern "C" __global__ void histogram(int* bins, const int* values) {
  atomicAdd(&bins[values[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
// Neighbouring bytes of one word, each its own thread's: no race.
extern "C" __global__ void neighbours(unsigned char* bytes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  bytes[i] = static_cast<unsigned char>(bytes[i] + 1);
}
extern "C" __global__ void fill(int* data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value; }
extern "C" __global__ void sum_up(const int* data, int* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      data[blockIdx.x * blockDim.x + threadIdx.x] + data[(blockIdx.x * blockDim.x + threadIdx.x) ^ 1];
}
