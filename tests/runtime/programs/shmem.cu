// NVSHMEM from host code and kernels, one case an argument; exit code 0 where it holds on every PE.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      std::printf("PE %d, line %d: %s\n", g_me, __LINE__, #condition);   \
      return 1;                                                          \
    }                                                                    \
  } while (0)

static int g_me = 0, g_n = 1;

__global__ void pass_on(int* inbox, uint64_t* signal, int value, uint64_t round) {
  const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  nvshmem_int_p(inbox, value, next);
  nvshmem_fence();
  nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, next);
  nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round);
}
// Counts its rounds on the device, as a captured graph must.
__global__ void pass_on_counted(int* inbox, uint64_t* signal, uint64_t* epoch) {
  const uint64_t round = *epoch + 1;
  const int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
  nvshmem_int_p(inbox + round % 2, static_cast<int>(me * 100 + round), next);
  nvshmem_fence();
  nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, next);
  nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round);
  *epoch = round;
}
__global__ void fill(int* p, int n, int value) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = value + i;
}
__global__ void print_value(const int* p) { printf("kernel of %d: %d\n", nvshmem_my_pe(), *p); }
__global__ void meet(int* out) {
  nvshmemx_barrier_all_block();
  if (threadIdx.x == 0) *out = nvshmem_n_pes();
}

static int previous() { return (g_me + g_n - 1) % g_n; }
static std::vector<int> fetch(const int* p, int n) {
  std::vector<int> out(n);
  cudaMemcpy(out.data(), p, n * sizeof(int), cudaMemcpyDeviceToHost);
  return out;
}

static int query() {
  int major = 0, minor = 0;
  nvshmem_info_get_version(&major, &minor);
  CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
  char name[NVSHMEM_MAX_NAME_LEN];
  nvshmem_info_get_name(name);
  CHECK(std::strlen(name) > 0);
  CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
  CHECK(nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == g_n && nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == g_me);
  CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, g_n - 1, NVSHMEM_TEAM_SHARED) == g_n - 1);
  int* p = static_cast<int*>(nvshmem_align(4096, 64));
  CHECK(p != nullptr && reinterpret_cast<uintptr_t>(p) % 4096 == 0);
  CHECK(nvshmem_ptr(p, g_me) == p);
  int* theirs = static_cast<int*>(nvshmem_ptr(p, previous()));
  CHECK(theirs != nullptr && (g_n == 1 || theirs != p));
  // A plain copy into a peer's memory, and what the peer then holds.
  const int value = 70 + g_me;
  CHECK(cudaMemcpy(theirs, &value, sizeof value, cudaMemcpyHostToDevice) == cudaSuccess);
  nvshmem_barrier_all();
  CHECK(fetch(p, 1)[0] == 70 + (g_me + 1) % g_n);
  nvshmem_free(p);
  return 0;
}

static int ring() {
  int* inbox = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  for (int round = 1; round <= 3; ++round) {
    pass_on<<<1, 1>>>(inbox, signal, g_me * 10 + round, round);
    nvshmemx_barrier_all_on_stream(0);
    CHECK(fetch(inbox, 1)[0] == previous() * 10 + round);
    nvshmem_barrier_all();
  }
  nvshmem_free(signal);
  nvshmem_free(inbox);
  return 0;
}

static int rma() {
  const int n = 64;
  int* here = static_cast<int*>(nvshmem_malloc(n * sizeof(int)));
  int* there = static_cast<int*>(nvshmem_malloc(n * sizeof(int)));
  const int next = (g_me + 1) % g_n;
  fill<<<1, 32>>>(here, n, g_me * 1000);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_int_put(there, here, n, next);
  nvshmem_quiet();
  nvshmem_barrier_all();
  CHECK(fetch(there, n)[n - 1] == previous() * 1000 + n - 1);
  nvshmem_barrier_all();
  nvshmem_getmem(there, here, n * sizeof(int), next);
  CHECK(fetch(there, n)[1] == next * 1000 + 1);
  CHECK(nvshmem_int_g(here + 2, next) == next * 1000 + 2);
  nvshmem_barrier_all();
  nvshmem_int_p(here, -5, next);
  nvshmem_int_iput(here + 10, there, 2, 1, 3, next);  // elements 10, 12, 14
  nvshmem_barrier_all();
  CHECK(fetch(here, 1)[0] == -5);
  CHECK(fetch(here, n)[12] == g_me * 1000 + 1 && fetch(here, n)[11] == g_me * 1000 + 11);
  nvshmem_free(there);
  nvshmem_free(here);
  return 0;
}

static int on_stream() {
  const int n = 16;
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  int* here = static_cast<int*>(nvshmem_malloc(n * sizeof(int)));
  int* there = static_cast<int*>(nvshmem_malloc(n * sizeof(int)));
  uint64_t* signals = static_cast<uint64_t*>(nvshmem_calloc(2, sizeof(uint64_t)));
  const int next = (g_me + 1) % g_n;
  fill<<<1, 32, 0, s>>>(here, n, g_me * 1000);
  nvshmemx_int_put_signal_on_stream(there, here, n, signals, 1, NVSHMEM_SIGNAL_SET, next, s);
  nvshmemx_signal_wait_until_on_stream(signals, NVSHMEM_CMP_EQ, 1, s);
  std::vector<int> got(n);
  cudaMemcpyAsync(got.data(), there, n * sizeof(int), cudaMemcpyDeviceToHost, s);
  cudaStreamSynchronize(s);
  CHECK(got[3] == previous() * 1000 + 3);
  nvshmemx_barrier_all_on_stream(s);
  nvshmemx_getmem_on_stream(there, here, n * sizeof(int), next, s);
  nvshmemx_signal_op_on_stream(signals + 1, 5, NVSHMEM_SIGNAL_ADD, next, s);
  nvshmemx_uint64_wait_until_on_stream(signals + 1, NVSHMEM_CMP_GE, 5, s);
  nvshmemx_quiet_on_stream(s);
  cudaStreamSynchronize(s);
  CHECK(fetch(there, n)[4] == next * 1000 + 4);
  CHECK(nvshmemx_int_g_on_stream(here + 1, next, s) == next * 1000 + 1);
  CHECK(nvshmem_signal_fetch(signals + 1) == 5);
  nvshmem_barrier_all();
  nvshmem_free(signals);
  nvshmem_free(there);
  nvshmem_free(here);
  cudaStreamDestroy(s);
  return 0;
}

static int collectives() {
  const int n = 8;
  int* in = static_cast<int*>(nvshmem_malloc(n * g_n * sizeof(int)));
  int* out = static_cast<int*>(nvshmem_malloc(n * g_n * sizeof(int)));
  fill<<<1, 32>>>(in, n * g_n, g_me * 100);
  cudaDeviceSynchronize();
  CHECK(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, out, in, n) == 0);
  CHECK(fetch(out, n)[2] == 100 * g_n * (g_n - 1) / 2 + 2 * g_n);
  nvshmem_barrier_all();
  CHECK(nvshmem_int_fcollect(NVSHMEM_TEAM_WORLD, out, in, n) == 0);
  CHECK(fetch(out, n * g_n)[n * (g_n - 1) + 1] == 100 * (g_n - 1) + 1);
  nvshmem_barrier_all();
  CHECK(nvshmem_int_alltoall(NVSHMEM_TEAM_WORLD, out, in, n) == 0);
  CHECK(fetch(out, n * g_n)[n * (g_n - 1)] == 100 * (g_n - 1) + n * g_me);
  nvshmem_barrier_all();
  cudaStream_t s;
  cudaStreamCreate(&s);
  CHECK(nvshmemx_int_broadcast_on_stream(NVSHMEM_TEAM_WORLD, out, in, n, g_n - 1, s) == 0);
  cudaStreamSynchronize(s);
  CHECK(fetch(out, n)[5] == 100 * (g_n - 1) + 5);
  CHECK(nvshmemx_int_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, out, in, n, s) == 0);
  cudaStreamSynchronize(s);
  CHECK(fetch(out, n)[5] == 100 * (g_n - 1) + 5);
  CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0 && nvshmem_barrier(NVSHMEM_TEAM_SHARED) == 0);
  cudaStreamDestroy(s);
  nvshmem_free(out);
  nvshmem_free(in);
  return 0;
}

static int graph_ring() {
  int* inbox = static_cast<int*>(nvshmem_calloc(2, sizeof(int)));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  uint64_t* epoch = nullptr;
  cudaMalloc(&epoch, sizeof(uint64_t));
  cudaMemset(epoch, 0, sizeof(uint64_t));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  pass_on_counted<<<1, 1, 0, s>>>(inbox, signal, epoch);
  nvshmemx_barrier_all_on_stream(s);
  CHECK(cudaStreamEndCapture(s, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (int i = 0; i < 5; ++i) CHECK(cudaGraphLaunch(exec, s) == cudaSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  CHECK(fetch(inbox, 2)[1] == previous() * 100 + 5 && fetch(inbox, 2)[0] == previous() * 100 + 4);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(s);
  cudaFree(epoch);
  nvshmem_barrier_all();
  nvshmem_free(signal);
  nvshmem_free(inbox);
  return 0;
}

static int collective_launch() {
  int* out = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  int blocks = 0;
  void* args[] = {&out};
  CHECK(nvshmemx_collective_launch_query_gridsize(reinterpret_cast<void*>(meet), dim3(64), args, 0, &blocks) == 0);
  CHECK(blocks >= 132);
  CHECK(nvshmemx_collective_launch(reinterpret_cast<void*>(meet), dim3(1), dim3(64), args, 0, 0) == 0);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(fetch(out, 1)[0] == g_n);
  nvshmem_free(out);
  return 0;
}

static int atomics() {
  long long* counter = static_cast<long long*>(nvshmem_calloc(1, sizeof(long long)));
  for (int i = 0; i < 3; ++i) nvshmem_longlong_atomic_add(counter, g_me + 1, 0);
  nvshmem_barrier_all();
  CHECK(nvshmem_longlong_atomic_fetch(counter, 0) == 3LL * g_n * (g_n + 1) / 2);
  nvshmem_barrier_all();
  if (g_me == 0) {
    CHECK(nvshmem_longlong_atomic_swap(counter, -7, 0) == 3LL * g_n * (g_n + 1) / 2);
    CHECK(nvshmem_longlong_atomic_compare_swap(counter, -7, 9, 0) == -7);
    CHECK(nvshmem_longlong_atomic_fetch_inc(counter, 0) == 9);
  }
  nvshmem_barrier_all();
  nvshmem_free(counter);
  return 0;
}

static int printing() {
  int *p = nullptr, seven = 7;
  cudaMalloc(&p, sizeof(int));
  cudaMemcpy(p, &seven, sizeof seven, cudaMemcpyHostToDevice);
  std::printf("host %d before\n", g_me);
  print_value<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  std::printf("host %d after\n", g_me);
  cudaFree(p);
  return 0;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "uniqueid") {
    // The id travels through the environment's rank here; every PE makes an equal one.
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (nvshmemx_get_uniqueid(&id) != 0) return 3;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    const int rank = std::stoi(std::getenv("RANK")), size = std::stoi(std::getenv("WORLD_SIZE"));
    if (nvshmemx_set_attr_uniqueid_args(rank, size, &id, &attributes) != 0) return 4;
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) return 5;
    if (nvshmem_my_pe() != rank || nvshmem_n_pes() != size) return 6;
    nvshmem_barrier_all();
    nvshmem_finalize();
    return 0;
  }
  nvshmem_init();
  g_me = nvshmem_my_pe();
  g_n = nvshmem_n_pes();
  if (cudaSetDevice(g_me) != cudaSuccess) return 2;
  int result = 2;
  if (name == "query") result = query();
  if (name == "ring") result = ring();
  if (name == "rma") result = rma();
  if (name == "on_stream") result = on_stream();
  if (name == "collectives") result = collectives();
  if (name == "graph_ring") result = graph_ring();
  if (name == "collective_launch") result = collective_launch();
  if (name == "atomics") result = atomics();
  if (name == "printing") result = printing();
  if (result != 0) return result;
  nvshmem_finalize();
  return 0;
}
