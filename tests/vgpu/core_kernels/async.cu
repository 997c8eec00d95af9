// Asynchronous copies, mbarriers, clusters and TMA, mostly as inline PTX.
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;

static __device__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
static __device__ void init_barrier(std::uint64_t* bar, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
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

extern "C" __global__ void copy_groups(const int* in, int* out) {  // one warp; three stages of cp.async
  __shared__ int stage[4][32];
  const int lane = threadIdx.x;
  for (int i = 0; i < 3; ++i) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&stage[i][lane])),
                 "l"(in + 32 * i + lane));
    asm volatile("cp.async.commit_group;");
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  out[lane] = stage[0][lane] + 1000 * stage[1][lane];
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[32 + lane] = stage[2][lane];
}

extern "C" __global__ void copy_not_waited(const int* in, int* out) {  // reads what was there before
  __shared__ int stage[32];
  stage[threadIdx.x] = -7;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&stage[threadIdx.x])),
               "l"(in + threadIdx.x));
  out[threadIdx.x] = stage[threadIdx.x];
  asm volatile("cp.async.wait_all;" ::: "memory");
}

extern "C" __global__ void copy_then_barrier(const int* in, int* out) {
  __shared__ int stage[64];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) init_barrier(&bar, 64);
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&stage[threadIdx.x])),
               "l"(in + threadIdx.x));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");
  wait_parity(&bar, 0);
  out[threadIdx.x] = stage[63 - threadIdx.x];
}

// Bulk copies in, a computation, and a bulk copy out; a ring of two stages.
extern "C" __global__ void bulk_ring(const int* in, int* out, int rounds) {
  __shared__ alignas(128) int stage[2][256];
  __shared__ alignas(128) int result[256];
  __shared__ std::uint64_t full[2];
  if (threadIdx.x == 0) {
    init_barrier(&full[0], 1);
    init_barrier(&full[1], 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const auto load = [&](int round) {
    std::uint64_t* bar = &full[round % 2];
    arrive_expect(bar, 1024);
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(stage[round % 2])),
        "l"(in + 256 * round), "r"(1024), "r"(shared_address(bar))
        : "memory");
  };
  if (threadIdx.x == 0) load(0);
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0 && round + 1 < rounds) load(round + 1);
    wait_parity(&full[round % 2], (round / 2) & 1);
    result[threadIdx.x] = 2 * stage[round % 2][255 - threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + 256 * round),
                   "r"(shared_address(result)), "r"(1024)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
}

extern "C" __global__ void bulk_reduce(const int* in, int* out) {
  __shared__ alignas(16) int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 256;" ::"l"(out),
                 "r"(shared_address(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

extern "C" __global__ void bulk_never_waited(const int* in) {
  __shared__ alignas(16) int tile[64];
  __shared__ std::uint64_t bar;
  init_barrier(&bar, 1);
  arrive_expect(&bar, 256);
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
          shared_address(tile)),
      "l"(in), "r"(shared_address(&bar))
      : "memory");
}

extern "C" __global__ void wait_for_ever(const int* in, int* out) {
  __shared__ alignas(16) int tile[64];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) init_barrier(&bar, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect(&bar, 512);  // twice what comes
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
            shared_address(tile)),
        "l"(in), "r"(shared_address(&bar))
        : "memory");
  }
  wait_parity(&bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// Each block reads the shared memory of the next one of its cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_ring(int* out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  int* theirs = cluster.map_shared_rank(mine, next);
  atomicAdd(theirs + 31 - threadIdx.x, 1000000);
  cluster.sync();
  out[blockIdx.x * 32 + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}

extern "C" __global__ void cluster_numbers(unsigned* out) {
  unsigned v[8];
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(v[0]));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(v[1]));
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(v[2]));
  asm("mov.u32 %0, %%clusterid.y;" : "=r"(v[3]));
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(v[4]));
  asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(v[5]));
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(v[6]));
  asm("mov.u32 %0, %%nclusterid.y;" : "=r"(v[7]));
  for (int i = 0; i < 8; ++i) out[8 * (blockIdx.y * gridDim.x + blockIdx.x) + i] = v[i];
}

// Reads a neighbour that may have ended.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_leaves(int* out) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  mine = 5 + blockIdx.x;
  cluster.sync();
  if (cluster.block_rank() == 1) return;
  for (int i = 0; i < 2000; ++i) asm volatile("nanosleep.u32 20;");
  out[0] = *cluster.map_shared_rank(&mine, 1);
}

// Block 0 multicasts to all; each block tells block 0's mbarrier when it has read; st.async carries results.
extern "C" __global__ void __cluster_dims__(2, 1, 1) multicast(const int* in, int* out) {
  __shared__ alignas(128) int tile[64];
  __shared__ int results[2];
  __shared__ std::uint64_t full, got, answers;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    init_barrier(&full, 1);
    init_barrier(&got, 2);
    init_barrier(&answers, 1);
    arrive_expect(&full, 256);
    if (rank == 0) arrive_expect(&answers, 8);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0 && rank == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, "
        "[%2], %3;" ::"r"(shared_address(tile)),
        "l"(in), "r"(shared_address(&full)), "h"(static_cast<std::uint16_t>(3))
        : "memory");
  }
  wait_parity(&full, 0);
  out[64 * rank + threadIdx.x] = tile[threadIdx.x] + static_cast<int>(rank);
  if (threadIdx.x == 0) {
    std::uint32_t remote_got, remote_result, remote_answers;
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote_got) : "r"(shared_address(&got)));
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote_result) : "r"(shared_address(&results[rank])));
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote_answers) : "r"(shared_address(&answers)));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote_got) : "memory");
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(
                     remote_result),
                 "r"(tile[63] * 10 + static_cast<int>(rank)), "r"(remote_answers)
                 : "memory");
    if (rank == 0) {
      wait_parity(&got, 0);
      wait_parity(&answers, 0);
      out[128] = results[0];
      out[129] = results[1];
    }
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

struct alignas(64) Map {
  std::uint64_t words[16];
};

// Loads a tile, stores it elsewhere with 1 added, and reduces it into a third tensor.
extern "C" __global__ void tensor_tile(const __grid_constant__ Map from, const __grid_constant__ Map to,
                                       const __grid_constant__ Map sum, int x, int y, int* raw) {
  __shared__ alignas(1024) int tile[16 * 32];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) {
    init_barrier(&bar, 1);
    asm volatile("prefetch.tensormap [%0];" ::"l"(&from));
    arrive_expect(&bar, 16 * 32 * 4);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared_address(tile)),
        "l"(&from), "r"(x), "r"(y), "r"(shared_address(&bar))
        : "memory");
  }
  __syncthreads();
  wait_parity(&bar, 0);
  for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) {
    raw[i] = tile[i];
    tile[i] += 1;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
                 "r"(x), "r"(y), "r"(shared_address(tile))
                 : "memory");
    asm volatile(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&sum),
        "r"(x), "r"(y), "r"(shared_address(tile))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}

extern "C" __global__ void narrow_tile(const __grid_constant__ Map from, int x, int* raw) {
  __shared__ alignas(1024) int tile[16 * 32];
  __shared__ std::uint64_t bar;
  for (int i = 0; i < 16 * 32; ++i) tile[i] = -5;
  init_barrier(&bar, 1);
  arrive_expect(&bar, 16 * 16 * 4);
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, 0}], "
      "[%3];" ::"r"(shared_address(tile)),
      "l"(&from), "r"(x), "r"(shared_address(&bar))
      : "memory");
  wait_parity(&bar, 0);
  for (int i = 0; i < 16 * 32; ++i) raw[i] = tile[i];
}
