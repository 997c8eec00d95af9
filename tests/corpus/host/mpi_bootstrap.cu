// echolo-test: mode=sanitize n=2 output="there is no MPI"
// expect: crashed
// A start through an MPI communicator: there is no MPI here, and the program is told so.
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  int communicator = 0;
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_mpi_comm_args(&communicator, &attr);
  nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr);
  nvshmem_finalize();
  return 0;
}
