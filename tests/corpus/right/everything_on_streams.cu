// echolo-test: mode=sanitize n=4
// expect: correct
// A step of a pipeline on two streams, ordered by events, without a kernel that communicates: puts with signals, waits
// for all of them, atomics and collectives, all in the order of their streams; then the same as a captured graph.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <vector>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      std::printf("PE %d, line %d: %s\n", nvshmem_my_pe(), __LINE__, #condition); \
      return 1;                                                                   \
    }                                                                             \
  } while (0)

constexpr int kCount = 8;

__global__ void fill(int* p, int base) { p[threadIdx.x] = base + static_cast<int>(threadIdx.x); }
__global__ void add(int* total, const int* parts, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += parts[i * kCount + threadIdx.x];
  total[threadIdx.x] = sum;
}

static std::vector<int> fetch(const int* p, int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  cudaMemcpy(out.data(), p, out.size() * sizeof(int), cudaMemcpyDeviceToHost);
  return out;
}

struct Step {
  int *mine, *inbox, *total, *gathered;
  uint64_t *signals, *expected;
  cudaStream_t work, talk;
  cudaEvent_t filled, arrived;
};

// Sends what this PE has to everybody and adds what everybody has sent.
static void step(const Step& s, int me, int n, uint64_t round) {
  fill<<<1, kCount, 0, s.work>>>(s.mine, 100 * me);
  cudaEventRecord(s.filled, s.work);
  cudaStreamWaitEvent(s.talk, s.filled, 0);
  for (int to = 0; to < n; ++to) {
    nvshmemx_int_put_signal_nbi_on_stream(s.inbox + me * kCount, s.mine, kCount, s.signals + me, round,
                                          NVSHMEM_SIGNAL_SET, to, s.talk);
  }
  nvshmemx_uint64_wait_until_all_on_stream(s.signals, static_cast<size_t>(n), nullptr, NVSHMEM_CMP_GE, round, s.talk);
  nvshmemx_uint64_wait_until_all_vector_on_stream(s.signals, static_cast<size_t>(n), nullptr, NVSHMEM_CMP_EQ,
                                                  s.expected, s.talk);
  cudaEventRecord(s.arrived, s.talk);
  cudaStreamWaitEvent(s.work, s.arrived, 0);
  add<<<1, kCount, 0, s.work>>>(s.total, s.inbox, n);
  nvshmemx_int_fcollect_on_stream(NVSHMEM_TEAM_WORLD, s.gathered, s.total, kCount, s.work);
  nvshmemx_quiet_on_stream(s.talk);
  cudaEventRecord(s.arrived, s.talk);
  cudaStreamWaitEvent(s.work, s.arrived, 0);
  nvshmemx_barrier_all_on_stream(s.work);
}

int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
  Step s;
  s.mine = static_cast<int*>(nvshmem_malloc(kCount * sizeof(int)));
  s.inbox = static_cast<int*>(nvshmem_malloc(n * kCount * sizeof(int)));
  s.total = static_cast<int*>(nvshmem_malloc(kCount * sizeof(int)));
  s.gathered = static_cast<int*>(nvshmem_malloc(n * kCount * sizeof(int)));
  s.signals = static_cast<uint64_t*>(nvshmem_calloc(n, sizeof(uint64_t)));
  cudaMalloc(&s.expected, n * sizeof(uint64_t));
  cudaStreamCreateWithFlags(&s.work, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&s.talk, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&s.filled, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&s.arrived, cudaEventDisableTiming);
  int sum = 0;
  for (int pe = 0; pe < n; ++pe) sum += 100 * pe;

  std::vector<uint64_t> ones(n, 1);
  cudaMemcpy(s.expected, ones.data(), n * sizeof(uint64_t), cudaMemcpyHostToDevice);
  nvshmem_barrier_all();
  step(s, me, n, 1);
  CHECK(cudaStreamSynchronize(s.work) == cudaSuccess);
  const std::vector<int> all = fetch(s.gathered, n * kCount);
  for (int i = 0; i < n * kCount; ++i) CHECK(all[i] == sum + n * (i % kCount));

  // Captured: the signals are reset between replays.
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(s.work, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cudaMemsetAsync(s.signals, 0, n * sizeof(uint64_t), s.work);
  nvshmemx_barrier_all_on_stream(s.work);
  step(s, me, n, 1);
  CHECK(cudaStreamEndCapture(s.work, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    cudaMemsetAsync(s.gathered, 0, n * kCount * sizeof(int), s.work);
    nvshmemx_barrier_all_on_stream(s.work);
    CHECK(cudaGraphLaunch(exec, s.work) == cudaSuccess);
    CHECK(cudaStreamSynchronize(s.work) == cudaSuccess);
    CHECK(fetch(s.gathered, n * kCount) == all);
  }

  // Elements and atomics.
  nvshmemx_int_p_on_stream(s.total, me, (me + 1) % n, s.work);
  nvshmemx_barrier_all_on_stream(s.work);
  CHECK(nvshmemx_int_g_on_stream(s.total, me, s.work) == (me + n - 1) % n);
  nvshmemx_signal_op_on_stream(s.signals, 5, NVSHMEM_SIGNAL_SET, (me + 1) % n, s.work);
  nvshmemx_signal_wait_until_on_stream(s.signals, NVSHMEM_CMP_EQ, 5, s.work);
  nvshmemx_barrier_all_on_stream(s.work);
  CHECK(cudaStreamSynchronize(s.work) == cudaSuccess);

  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaEventDestroy(s.arrived);
  cudaEventDestroy(s.filled);
  cudaStreamDestroy(s.talk);
  cudaStreamDestroy(s.work);
  cudaFree(s.expected);
  nvshmem_free(s.signals);
  nvshmem_free(s.gathered);
  nvshmem_free(s.total);
  nvshmem_free(s.inbox);
  nvshmem_free(s.mine);
  nvshmem_finalize();
  return 0;
}
