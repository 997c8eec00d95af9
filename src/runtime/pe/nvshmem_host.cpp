// The host side of NVSHMEM: start and end, the symmetric heap, and the operations that are not typed. All of
// them travel by name to shmem::Fabric on the node, which also serves kernels.
#include "runtime/pe/nvshmem_host.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

namespace echolo::runtime::pe {
namespace {

int g_initialised = 0;  // how often init was called without its finalize
bool g_finalised = false;

void stop(const char* name, const char* why) {
  std::fprintf(stderr, "echolo: %s: %s\n", name, why);
  std::exit(255);
}

void require_init(const char* name) {
  if (g_initialised == 0)
    stop(name, g_finalised ? "called after nvshmem_finalize" : "called before nvshmem_init");
}

int start(const char* name) {
  if (g_initialised++ > 0) return 0;
  Call call(wire::Op::kShmemInit, name);
  if (call.send() != kSuccess) stop(name, "no connection to the virtual node");
  return 0;
}

void end(const char* name) {
  if (g_initialised == 0 || --g_initialised > 0) return;
  Call call(wire::Op::kShmemFinalize, name);
  call.send();
  g_finalised = true;
}

}  // namespace

std::uint64_t host_call(const char* name, const std::uint64_t* arguments, std::uint32_t n,
                        const cudaStream_t* stream) {
  require_init(name);
  Call call(wire::Op::kShmemCall, name);
  call.in.u8(stream != nullptr ? 1 : 0)
      .u64(stream == nullptr ? 0 : reinterpret_cast<std::uint64_t>(*stream))
      .u32(n);
  for (std::uint32_t i = 0; i < n; ++i) call.in.u64(arguments[i]);
  const int error = call.send();
  if (error != kSuccess) {
    std::fprintf(stderr, "echolo: %s: %s\n", name, cudaGetErrorString(static_cast<cudaError_t>(error)));
    return static_cast<std::uint64_t>(-1);
  }
  return call.out.u64();
}

}  // namespace echolo::runtime::pe

extern "C" {

void nvshmem_init(void) { start("nvshmem_init"); }
int nvshmem_init_thread(int, int* provided) {
  if (provided != nullptr) *provided = NVSHMEM_THREAD_MULTIPLE;
  return start("nvshmem_init_thread");
}
void nvshmem_query_thread(int* provided) { *provided = NVSHMEM_THREAD_MULTIPLE; }
void nvshmem_finalize(void) { end("nvshmem_finalize"); }
void nvshmemx_hostlib_finalize(void) { end("nvshmemx_hostlib_finalize"); }
void nvshmem_global_exit(int status) { std::exit(status); }
int nvshmemx_init_status(void) {
  return g_initialised > 0 ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED;
}

// The node knows rank and size already; an id only has to be the same for all, and to be passed around.
int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* id) {
  if (id == nullptr) return 1;
  std::memset(id, 0, sizeof *id);
  id->version = 1;
  std::snprintf(id->internal, sizeof id->internal, "virtual node");
  return 0;
}
int nvshmemx_set_attr_uniqueid_args(int rank, int n_ranks, const nvshmemx_uniqueid_t* id,
                                    nvshmemx_init_attr_t* attr) {
  if (id == nullptr || attr == nullptr) return 1;
  attr->args.uid_args.id = const_cast<nvshmemx_uniqueid_t*>(id);
  attr->args.uid_args.myrank = rank;
  attr->args.uid_args.nranks = n_ranks;
  return 0;
}
int nvshmemx_hostlib_init_attr(unsigned flags, nvshmemx_init_attr_t* attr) {
  const wire::Hello* hello = __cudaEcholoHello();
  if (hello == nullptr) stop("nvshmemx_init_attr", "no connection to the virtual node");
  if ((flags & (NVSHMEMX_INIT_WITH_MPI_COMM | NVSHMEMX_INIT_WITH_SHMEM)) != 0) {
    stop("nvshmemx_init_attr",
         "there is no MPI or OpenSHMEM here to bootstrap with: the virtual node starts the PEs itself, as "
         "nvshmrun does; call nvshmem_init, or use NVSHMEMX_INIT_WITH_UNIQUEID");
  }
  if ((flags & NVSHMEMX_INIT_WITH_UNIQUEID) != 0) {
    if (attr == nullptr || attr->args.uid_args.id == nullptr) return 1;
    if (std::strcmp(attr->args.uid_args.id->internal, "virtual node") != 0) {
      stop("nvshmemx_init_attr", "the unique id does not come from nvshmemx_get_uniqueid");
    }
    if (attr->args.uid_args.myrank != hello->pe || attr->args.uid_args.nranks != hello->n_pes) {
      stop("nvshmemx_init_attr",
           "rank and number of ranks differ from what the virtual node gave this process");
    }
  }
  return start("nvshmemx_init_attr");
}
int nvshmemx_init_attr(unsigned flags, nvshmemx_init_attr_t* attr) {
  return nvshmemx_hostlib_init_attr(flags, attr);
}

int nvshmem_my_pe(void) {
  require_init("nvshmem_my_pe");
  return __cudaEcholoHello()->pe;
}
int nvshmem_n_pes(void) {
  require_init("nvshmem_n_pes");
  return __cudaEcholoHello()->n_pes;
}
void nvshmem_info_get_version(int* major, int* minor) {
  *major = NVSHMEM_MAJOR_VERSION;
  *minor = NVSHMEM_MINOR_VERSION;
}
void nvshmem_info_get_name(char* name) {
  std::snprintf(name, NVSHMEM_MAX_NAME_LEN, "%s", NVSHMEM_VENDOR_STRING);
}
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

void* nvshmem_malloc(size_t size) { return reinterpret_cast<void*>(forward("nvshmem_malloc", size)); }
void* nvshmem_calloc(size_t count, size_t size) {
  return reinterpret_cast<void*>(forward("nvshmem_calloc", count, size));
}
void* nvshmem_align(size_t alignment, size_t size) {
  return reinterpret_cast<void*>(forward("nvshmem_align", alignment, size));
}
void nvshmem_free(void* p) {
  if (p != nullptr) forward("nvshmem_free", p);
}
void* nvshmem_ptr(const void* p, int pe) { return reinterpret_cast<void*>(forward("nvshmem_ptr", p, pe)); }
void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* p) {
  return reinterpret_cast<void*>(forward("nvshmemx_mc_ptr", team, p));
}

void nvshmem_quiet(void) { forward("nvshmem_quiet"); }
void nvshmem_fence(void) { forward("nvshmem_fence"); }
void nvshmem_barrier_all(void) { forward("nvshmem_barrier_all"); }
void nvshmem_sync_all(void) { forward("nvshmem_sync_all"); }
int nvshmem_barrier(nvshmem_team_t team) { return static_cast<int>(forward("nvshmem_barrier", team)); }
int nvshmem_team_sync(nvshmem_team_t team) { return static_cast<int>(forward("nvshmem_team_sync", team)); }

void nvshmemx_quiet_on_stream(cudaStream_t s) { forward_on(s, "nvshmemx_quiet_on_stream"); }
void nvshmemx_barrier_all_on_stream(cudaStream_t s) { forward_on(s, "nvshmemx_barrier_all_on_stream"); }
void nvshmemx_sync_all_on_stream(cudaStream_t s) { forward_on(s, "nvshmemx_sync_all_on_stream"); }
int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t s) {
  return static_cast<int>(forward_on(s, "nvshmemx_barrier_on_stream", team));
}
int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t s) {
  return static_cast<int>(forward_on(s, "nvshmemx_team_sync_on_stream", team));
}

uint64_t nvshmem_signal_fetch(uint64_t* signal) { return forward("nvshmem_signal_fetch", signal); }
void nvshmemx_signal_op(uint64_t* signal, uint64_t value, int op, int pe) {
  forward("nvshmemx_signal_op", signal, value, op, pe);
}
void nvshmemx_signal_op_on_stream(uint64_t* signal, uint64_t value, int op, int pe, cudaStream_t s) {
  forward_on(s, "nvshmemx_signal_op_on_stream", signal, value, op, pe);
}
void nvshmemx_signal_wait_until_on_stream(uint64_t* signal, int cmp, uint64_t value, cudaStream_t s) {
  forward_on(s, "nvshmemx_signal_wait_until_on_stream", signal, cmp, value);
}

// ---- untyped memory ----
void nvshmem_putmem(void* d, const void* s, size_t n, int pe) { forward("nvshmem_putmem", d, s, n, pe); }
void nvshmem_putmem_nbi(void* d, const void* s, size_t n, int pe) {
  forward("nvshmem_putmem_nbi", d, s, n, pe);
}
void nvshmem_getmem(void* d, const void* s, size_t n, int pe) { forward("nvshmem_getmem", d, s, n, pe); }
void nvshmem_getmem_nbi(void* d, const void* s, size_t n, int pe) {
  forward("nvshmem_getmem_nbi", d, s, n, pe);
}
void nvshmemx_putmem_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {
  forward_on(q, "nvshmemx_putmem_on_stream", d, s, n, pe);
}
void nvshmemx_putmem_nbi_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {
  forward_on(q, "nvshmemx_putmem_nbi_on_stream", d, s, n, pe);
}
void nvshmemx_getmem_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {
  forward_on(q, "nvshmemx_getmem_on_stream", d, s, n, pe);
}
void nvshmemx_getmem_nbi_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {
  forward_on(q, "nvshmemx_getmem_nbi_on_stream", d, s, n, pe);
}
void nvshmemx_putmem_signal_on_stream(void* d, const void* s, size_t n, uint64_t* signal, uint64_t value,
                                      int op, int pe, cudaStream_t q) {
  forward_on(q, "nvshmemx_putmem_signal_on_stream", d, s, n, signal, value, op, pe);
}
void nvshmemx_putmem_signal_nbi_on_stream(void* d, const void* s, size_t n, uint64_t* signal, uint64_t value,
                                          int op, int pe, cudaStream_t q) {
  forward_on(q, "nvshmemx_putmem_signal_nbi_on_stream", d, s, n, signal, value, op, pe);
}
int nvshmem_alltoallmem(nvshmem_team_t team, void* d, const void* s, size_t n) {
  return static_cast<int>(forward("nvshmem_alltoallmem", team, d, s, n));
}
int nvshmem_fcollectmem(nvshmem_team_t team, void* d, const void* s, size_t n) {
  return static_cast<int>(forward("nvshmem_fcollectmem", team, d, s, n));
}
int nvshmem_broadcastmem(nvshmem_team_t team, void* d, const void* s, size_t n, int root) {
  return static_cast<int>(forward("nvshmem_broadcastmem", team, d, s, n, root));
}
int nvshmemx_alltoallmem_on_stream(nvshmem_team_t team, void* d, const void* s, size_t n, cudaStream_t q) {
  return static_cast<int>(forward_on(q, "nvshmemx_alltoallmem_on_stream", team, d, s, n));
}
int nvshmemx_fcollectmem_on_stream(nvshmem_team_t team, void* d, const void* s, size_t n, cudaStream_t q) {
  return static_cast<int>(forward_on(q, "nvshmemx_fcollectmem_on_stream", team, d, s, n));
}
int nvshmemx_broadcastmem_on_stream(nvshmem_team_t team, void* d, const void* s, size_t n, int root,
                                    cudaStream_t q) {
  return static_cast<int>(forward_on(q, "nvshmemx_broadcastmem_on_stream", team, d, s, n, root));
}

// ---- launch ----
// A collective launch is a cooperative one on every PE: all its blocks are resident at once.
int nvshmemx_collective_launch(const void* function, dim3 grid, dim3 block, void** args, size_t shared,
                               cudaStream_t stream) {
  require_init("nvshmemx_collective_launch");
  if (grid.x == 0 && grid.y == 0 && grid.z == 0) {
    int blocks = 0;
    if (const int error = nvshmemx_collective_launch_query_gridsize(function, block, args, shared, &blocks))
      return error;
    grid = dim3(static_cast<unsigned>(blocks));
  }
  return static_cast<int>(cudaLaunchCooperativeKernel(function, grid, block, args, shared, stream));
}

int nvshmemx_collective_launch_query_gridsize(const void* function, dim3 block, void**, size_t shared,
                                              int* size) {
  if (size == nullptr) return 1;
  int blocks = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, function, static_cast<int>(block.x * block.y * block.z), shared);
  if (error != cudaSuccess) return static_cast<int>(error);
  *size = blocks * __cudaEcholoHello()->sms;
  return 0;
}
}
