// Teams, registered buffers and modules on the host side of NVSHMEM.
#include <pthread.h>

#include <map>

#include "runtime/pe/nvshmem_host.hpp"

using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::uint64_t kRefused = std::uint64_t{1} << 63U;

nvshmem_team_t team_in(std::uint64_t bits) {
  return static_cast<nvshmem_team_t>(static_cast<std::uint32_t>(bits));
}

struct Buffers {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  std::map<std::uint64_t, std::size_t> ranges;
};
Buffers& buffers() {
  static auto* the = new Buffers;  // NOLINT(cppcoreguidelines-owning-memory): outlives static destructors
  return *the;
}
struct Lock {
  Lock() { pthread_mutex_lock(&buffers().lock); }
  ~Lock() { pthread_mutex_unlock(&buffers().lock); }
};

}  // namespace

extern "C" {

int nvshmem_team_my_pe(nvshmem_team_t team) { return static_cast<int>(forward("nvshmem_team_my_pe", team)); }
int nvshmem_team_n_pes(nvshmem_team_t team) { return static_cast<int>(forward("nvshmem_team_n_pes", team)); }
int nvshmem_team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to) {
  return static_cast<int>(forward("nvshmem_team_translate_pe", from, pe, to));
}
int nvshmem_team_split_strided(nvshmem_team_t parent, int start_pe, int stride, int size,
                               const nvshmem_team_config_t*, long, nvshmem_team_t* team) {
  if (team == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
  const std::uint64_t made = forward("nvshmem_team_split_strided", parent, start_pe, stride, size);
  *team = (made & kRefused) != 0 ? static_cast<nvshmem_team_t>(NVSHMEM_TEAM_INVALID) : team_in(made);
  return (made & kRefused) != 0 ? NVSHMEMX_ERROR_INVALID_VALUE : 0;
}
int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange, const nvshmem_team_config_t*, long,
                          nvshmem_team_t* x, const nvshmem_team_config_t*, long, nvshmem_team_t* y) {
  if (x == nullptr || y == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
  const std::uint64_t made = forward("nvshmem_team_split_2d", parent, xrange);
  const bool refused = (made & kRefused) != 0;
  *x = refused ? static_cast<nvshmem_team_t>(NVSHMEM_TEAM_INVALID) : team_in(made);
  *y = refused ? static_cast<nvshmem_team_t>(NVSHMEM_TEAM_INVALID) : team_in(made >> 32U);
  return refused ? NVSHMEMX_ERROR_INVALID_VALUE : 0;
}
int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config) {
  if (config == nullptr || nvshmem_team_n_pes(team) < 0) return NVSHMEMX_ERROR_INVALID_VALUE;
  *config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  return 0;
}
void nvshmem_team_destroy(nvshmem_team_t team) { forward("nvshmem_team_destroy", team); }

const char* nvshmemx_status_string(int status) {
  switch (status) {
    case NVSHMEMX_SUCCESS:
      return "NVSHMEMX_SUCCESS";
    case NVSHMEMX_ERROR_INVALID_VALUE:
      return "NVSHMEMX_ERROR_INVALID_VALUE";
    case NVSHMEMX_ERROR_OUT_OF_MEMORY:
      return "NVSHMEMX_ERROR_OUT_OF_MEMORY";
    case NVSHMEMX_ERROR_NOT_SUPPORTED:
      return "NVSHMEMX_ERROR_NOT_SUPPORTED";
    case NVSHMEMX_ERROR_SYMMETRY:
      return "NVSHMEMX_ERROR_SYMMETRY";
    case NVSHMEMX_ERROR_GPU_NOT_SELECTED:
      return "NVSHMEMX_ERROR_GPU_NOT_SELECTED";
    case NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED:
      return "NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED";
    case NVSHMEMX_ERROR_INTERNAL:
      return "NVSHMEMX_ERROR_INTERNAL";
    default:
      return "an unknown status";
  }
}

int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr) {
  if (mpi_comm == nullptr || attr == nullptr) return NVSHMEMX_ERROR_INVALID_VALUE;
  attr->mpi_comm = mpi_comm;
  return 0;
}

// ---- modules: the node knows the device functions of every module ----
int nvshmemx_cumodule_init(CUmodule module) {
  unsigned n = 0;
  return cuModuleGetFunctionCount(&n, module) == CUDA_SUCCESS ? 0 : NVSHMEMX_ERROR_INVALID_VALUE;
}
int nvshmemx_cumodule_finalize(CUmodule module) { return nvshmemx_cumodule_init(module); }
int nvshmemx_culibrary_init(CUlibrary library) {
  unsigned n = 0;
  return cuLibraryGetKernelCount(&n, library) == CUDA_SUCCESS ? 0 : NVSHMEMX_ERROR_INVALID_VALUE;
}
int nvshmemx_culibrary_finalize(CUlibrary library) { return nvshmemx_culibrary_init(library); }

// ---- registered buffers ----
int nvshmemx_buffer_register(void* address, size_t length) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  if (address == nullptr || length == 0) return NVSHMEMX_ERROR_INVALID_VALUE;
  if (!in_arena(address) && !in_host_range(address))
    return unsupported("nvshmemx_buffer_register",
                       "pageable host memory can't be registered; use memory from cudaMalloc or "
                       "cudaMallocHost"),
           NVSHMEMX_ERROR_NOT_SUPPORTED;
  const Lock lock;
  auto& ranges = buffers().ranges;
  const auto after = ranges.lower_bound(begin);
  if (after != ranges.end() && after->first < begin + length) return NVSHMEMX_ERROR_INVALID_VALUE;
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second > begin) return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  ranges[begin] = length;
  return 0;
}
int nvshmemx_buffer_unregister(void* address) {
  const Lock lock;
  return buffers().ranges.erase(reinterpret_cast<std::uint64_t>(address)) == 1
             ? 0
             : static_cast<int>(NVSHMEMX_ERROR_INVALID_VALUE);
}
void nvshmemx_buffer_unregister_all(void) {
  const Lock lock;
  buffers().ranges.clear();
}
}
