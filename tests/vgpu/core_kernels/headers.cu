// What the toolkit's own headers make of groups, barriers, pipelines and block-wide primitives.
#pragma nv_diag_suppress 20054, 1444
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdint>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int* in, int* out) {  // one block of 128
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  const int sum = cg::reduce(tile, in[block.thread_rank()], cg::plus<int>());
  const int scan = cg::inclusive_scan(tile, in[block.thread_rank()], cg::plus<int>());
  out[block.thread_rank()] = sum;
  out[128 + block.thread_rank()] = scan;
}

extern "C" __global__ void group_copy(const int* in, int* out, int n) {
  extern __shared__ int stage[];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, stage, in, sizeof(int) * n);
  cg::wait(block);
  for (int i = block.thread_rank(); i < n; i += block.size()) out[i] = stage[n - 1 - i];
}

extern "C" __global__ void grid_sum(int* data, int* total) {  // cooperative
  cg::grid_group grid = cg::this_grid();
  data[grid.thread_rank()] = static_cast<int>(grid.thread_rank());
  grid.sync();
  if (grid.thread_rank() == 0) {
    int sum = 0;
    for (int i = 0; i < static_cast<int>(grid.size()); ++i) sum += data[i];
    *total = sum;
  }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const int* in, int* out, int n) {
  __shared__ int bins[32];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 32) bins[threadIdx.x] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) {
    const int bin = in[i] % 64;
    int* theirs = cluster.map_shared_rank(bins, bin / 32);
    atomicAdd(&theirs[bin % 32], 1);
  }
  cluster.sync();
  if (threadIdx.x < 32) out[cluster.block_rank() * 32 + threadIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void references(int* counter, unsigned long long* most, float* sum) {
  cuda::atomic_ref<int, cuda::thread_scope_device> count(*counter);
  count.fetch_add(2, cuda::memory_order_relaxed);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_system>(*most).fetch_max(threadIdx.x + 10ull * blockIdx.x);
  cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
}

extern "C" __global__ void barriers(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int values[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = in[threadIdx.x] + round;
    auto token = bar.arrive();
    bar.wait(std::move(token));
    out[128 * round + threadIdx.x] = values[127 - threadIdx.x];
    bar.arrive_and_wait();
  }
}

extern "C" __global__ void bulk_barrier(const int* in, int* out) {  // cuda::memcpy_async with a barrier
  __shared__ alignas(16) int stage[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::experimental::cp_async_bulk_global_to_shared(stage, in, sizeof stage, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof stage);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  out[threadIdx.x] = stage[threadIdx.x] * 3;
}

extern "C" __global__ void pipelined(const int* in, int* out, int batches) {
  constexpr int kStages = 2;
  __shared__ int stage[kStages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int compute = 0, fetch = 0; compute < batches; ++compute) {
    for (; fetch < batches && fetch < compute + kStages; ++fetch) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stage[fetch % kStages], in + 128 * fetch, sizeof(int) * 128, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[128 * compute + threadIdx.x] = stage[compute % kStages][127 - threadIdx.x];
    pipeline.consumer_release();
  }
}

extern "C" __global__ void block_primitives(const int* in, int* out) {  // 128 threads
  using Reduce = cub::BlockReduce<int, 128>;
  using Scan = cub::BlockScan<int, 128>;
  using Sort = cub::BlockRadixSort<int, 128, 2>;
  using Warp = cub::WarpReduce<int>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename Sort::TempStorage sort;
    typename Warp::TempStorage warp[4];
  } shared;
  const int mine = in[threadIdx.x];
  const int sum = Reduce(shared.reduce).Sum(mine);
  if (threadIdx.x == 0) out[0] = sum;
  __syncthreads();
  int before = 0;
  Scan(shared.scan).ExclusiveSum(mine, before);
  out[1 + threadIdx.x] = before;
  __syncthreads();
  int keys[2] = {mine, in[128 + threadIdx.x]};
  Sort(shared.sort).Sort(keys);
  out[129 + 2 * threadIdx.x] = keys[0];
  out[130 + 2 * threadIdx.x] = keys[1];
  __syncthreads();
  const int warp_sum = Warp(shared.warp[threadIdx.x / 32]).Sum(mine);
  if (threadIdx.x % 32 == 0) out[385 + threadIdx.x / 32] = warp_sum;
}

struct Node {
  int value;
  Node* next;
};

extern "C" __global__ void heap(int* out, int keep) {  // each thread builds and frees a list
  Node* head = nullptr;
  for (int i = 0; i < 4; ++i) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (node == nullptr) return;
    node->value = i + static_cast<int>(threadIdx.x);
    node->next = head;
    head = node;
  }
  int sum = 0;
  while (head != nullptr) {
    sum += head->value;
    Node* next = head->next;
    if (!(keep && next == nullptr)) free(head);
    head = next;
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void heap_overrun(int* out) {
  int* p = static_cast<int*>(malloc(16));
  p[4] = 1;
  out[0] = p[4];
}
