// echolo-test: mode=sanitize n=2
// expect: correct
// The world and the node team, and info queries.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstring>

int main(int argc, char** argv) {
  // One process is started for each PE; which one this is and how they meet comes from the launcher.
  nvshmem_init();
  int wrong = argc < 1 || argv[0] == nullptr;
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  wrong += nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) != pe || nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) != n;
  wrong += nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) != n;
  wrong += nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe, NVSHMEMX_TEAM_NODE) != pe;
  int major = 0, minor = 0;
  nvshmem_info_get_version(&major, &minor);
  wrong += major < 1;
  nvshmem_finalize();
  return wrong != 0;
}
