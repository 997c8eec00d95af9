// NVSHMEM's extensions: warp and block forms of the device functions, operations on streams, initialisation
// by unique id, collective launch. See nvshmem.h for what holds of all of them.
#ifndef ECHOLO_NVSHMEMX_H
#define ECHOLO_NVSHMEMX_H

#include <cuda.h>

#include "nvshmem.h"

typedef struct {
  int version;
  char internal[124];
} nvshmemx_uniqueid_t;
typedef struct {
  int version;
  nvshmemx_uniqueid_t* id;
  int myrank;
  int nranks;
} nvshmemx_uniqueid_args_t;
typedef struct {
  int version;
  void* mpi_comm;
  struct {
    int version;
    nvshmemx_uniqueid_args_t uid_args;
    char content[96];
  } args;
} nvshmemx_init_attr_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER \
  {                                   \
    1, { 0 }                          \
  }
#define NVSHMEMX_INIT_ATTR_INITIALIZER \
  {                                    \
    1, NULL, {                         \
      1, {1, NULL, -1, -1}, { 0 }      \
    }                                  \
  }
enum nvshmemx_status {
  NVSHMEMX_SUCCESS = 0,
  NVSHMEMX_ERROR_INVALID_VALUE,
  NVSHMEMX_ERROR_OUT_OF_MEMORY,
  NVSHMEMX_ERROR_NOT_SUPPORTED,
  NVSHMEMX_ERROR_SYMMETRY,
  NVSHMEMX_ERROR_GPU_NOT_SELECTED,
  NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED,
  NVSHMEMX_ERROR_INTERNAL
};
#define NVSHMEMX_INIT_THREAD_PES 1u
#define NVSHMEMX_INIT_WITH_MPI_COMM (1u << 1)
#define NVSHMEMX_INIT_WITH_SHMEM (1u << 2)
#define NVSHMEMX_INIT_WITH_UNIQUEID (1u << 3)

#ifdef __cplusplus
extern "C" {
#endif

int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* uniqueid);
int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks, const nvshmemx_uniqueid_t* uniqueid,
                                    nvshmemx_init_attr_t* attr);
int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t* attributes);
int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t* attributes);
void nvshmemx_hostlib_finalize(void);

/* The virtual node has no MPI: nvshmemx_init_attr ends a program that asks for it, and says so. */
int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr);
const char* nvshmemx_status_string(int status);

/* Modules that were loaded with cuModuleLoad* or cuLibraryLoad* may call device functions at once; these two
   check their argument. */
int nvshmemx_cumodule_init(CUmodule module);
int nvshmemx_cumodule_finalize(CUmodule module);
int nvshmemx_culibrary_init(CUlibrary library);
int nvshmemx_culibrary_finalize(CUlibrary library);

/* Makes device memory that is not symmetric usable as a local buffer over any fabric. Ranges may not overlap;
   `addr` of unregister is what was registered. */
int nvshmemx_buffer_register(void* addr, size_t length);
int nvshmemx_buffer_unregister(void* addr);
void nvshmemx_buffer_unregister_all(void);

int nvshmemx_collective_launch(const void* func, dim3 grid_dims, dim3 block_dims, void** args,
                               size_t shared_bytes, cudaStream_t stream);
int nvshmemx_collective_launch_query_gridsize(const void* func, dim3 block_dims, void** args,
                                              size_t shared_bytes, int* gridsize);

/* The multicast address of a symmetric object for the PEs of a team, for multimem instructions; NULL where
   the fabric has none. */
ECHOLO_SHMEM_HD void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* ptr);
ECHOLO_SHMEM_HD void nvshmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);

// ---- on streams ----
void nvshmemx_quiet_on_stream(cudaStream_t stream);
void nvshmemx_barrier_all_on_stream(cudaStream_t stream);
void nvshmemx_sync_all_on_stream(cudaStream_t stream);
int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream);
int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream);
void nvshmemx_signal_op_on_stream(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                  cudaStream_t stream);
void nvshmemx_signal_wait_until_on_stream(uint64_t* sig_addr, int cmp, uint64_t cmp_value,
                                          cudaStream_t stream);
#define ECHOLO_X(NAME, TYPE)                                                                          \
  void nvshmemx_##NAME##_p_on_stream(TYPE* dest, const TYPE value, int pe, cudaStream_t stream);      \
  TYPE nvshmemx_##NAME##_g_on_stream(const TYPE* source, int pe, cudaStream_t stream);                \
  void nvshmemx_##NAME##_put_on_stream(TYPE* dest, const TYPE* source, size_t nelems, int pe,         \
                                       cudaStream_t stream);                                          \
  void nvshmemx_##NAME##_put_nbi_on_stream(TYPE* dest, const TYPE* source, size_t nelems, int pe,     \
                                           cudaStream_t stream);                                      \
  void nvshmemx_##NAME##_get_on_stream(TYPE* dest, const TYPE* source, size_t nelems, int pe,         \
                                       cudaStream_t stream);                                          \
  void nvshmemx_##NAME##_get_nbi_on_stream(TYPE* dest, const TYPE* source, size_t nelems, int pe,     \
                                           cudaStream_t stream);                                      \
  void nvshmemx_##NAME##_iput_on_stream(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                                        size_t nelems, int pe, cudaStream_t stream);                  \
  void nvshmemx_##NAME##_iget_on_stream(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                                        size_t nelems, int pe, cudaStream_t stream);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                               \
  void nvshmemx_put##BITS##_on_stream(void* dest, const void* source, size_t nelems, int pe,         \
                                      cudaStream_t stream);                                          \
  void nvshmemx_put##BITS##_nbi_on_stream(void* dest, const void* source, size_t nelems, int pe,     \
                                          cudaStream_t stream);                                      \
  void nvshmemx_get##BITS##_on_stream(void* dest, const void* source, size_t nelems, int pe,         \
                                      cudaStream_t stream);                                          \
  void nvshmemx_get##BITS##_nbi_on_stream(void* dest, const void* source, size_t nelems, int pe,     \
                                          cudaStream_t stream);                                      \
  void nvshmemx_iput##BITS##_on_stream(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, \
                                       size_t nelems, int pe, cudaStream_t stream);                  \
  void nvshmemx_iget##BITS##_on_stream(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, \
                                       size_t nelems, int pe, cudaStream_t stream);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
void nvshmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe, cudaStream_t stream);
void nvshmemx_putmem_nbi_on_stream(void* dest, const void* source, size_t bytes, int pe, cudaStream_t stream);
void nvshmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe, cudaStream_t stream);
void nvshmemx_getmem_nbi_on_stream(void* dest, const void* source, size_t bytes, int pe, cudaStream_t stream);
#define ECHOLO_X(NAME, TYPE)                                                                               \
  void nvshmemx_##NAME##_put_signal_on_stream(TYPE* dest, const TYPE* source, size_t nelems,               \
                                              uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,     \
                                              cudaStream_t stream);                                        \
  void nvshmemx_##NAME##_put_signal_nbi_on_stream(TYPE* dest, const TYPE* source, size_t nelems,           \
                                                  uint64_t* sig_addr, uint64_t signal, int sig_op, int pe, \
                                                  cudaStream_t stream);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                    \
  void nvshmemx_put##BITS##_signal_on_stream(void* dest, const void* source, size_t nelems,               \
                                             uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,     \
                                             cudaStream_t stream);                                        \
  void nvshmemx_put##BITS##_signal_nbi_on_stream(void* dest, const void* source, size_t nelems,           \
                                                 uint64_t* sig_addr, uint64_t signal, int sig_op, int pe, \
                                                 cudaStream_t stream);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
void nvshmemx_putmem_signal_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                      uint64_t signal, int sig_op, int pe, cudaStream_t stream);
void nvshmemx_putmem_signal_nbi_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                          uint64_t signal, int sig_op, int pe, cudaStream_t stream);
#define ECHOLO_X(NAME, TYPE)                                                                     \
  int nvshmemx_##NAME##_alltoall_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                           size_t nelems, cudaStream_t stream);                  \
  int nvshmemx_##NAME##_fcollect_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                           size_t nelems, cudaStream_t stream);                  \
  int nvshmemx_##NAME##_broadcast_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source, \
                                            size_t nelems, int pe_root, cudaStream_t stream);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
int nvshmemx_alltoallmem_on_stream(nvshmem_team_t team, void* dest, const void* source, size_t bytes,
                                   cudaStream_t stream);
int nvshmemx_fcollectmem_on_stream(nvshmem_team_t team, void* dest, const void* source, size_t bytes,
                                   cudaStream_t stream);
int nvshmemx_broadcastmem_on_stream(nvshmem_team_t team, void* dest, const void* source, size_t bytes,
                                    int pe_root, cudaStream_t stream);
#define ECHOLO_X(NAME, TYPE)                                                                              \
  void nvshmemx_##NAME##_wait_until_on_stream(TYPE* ivar, int cmp, TYPE cmp_value, cudaStream_t stream);  \
  void nvshmemx_##NAME##_wait_until_all_on_stream(TYPE* ivars, size_t nelems, const int* status, int cmp, \
                                                  TYPE cmp_value, cudaStream_t stream);                   \
  void nvshmemx_##NAME##_wait_until_all_vector_on_stream(TYPE* ivars, size_t nelems, const int* status,   \
                                                         int cmp, TYPE* cmp_values, cudaStream_t stream);
ECHOLO_SHMEM_WAIT_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_REDUCE(NAME, TYPE, OP)                                                                       \
  int nvshmemx_##NAME##_##OP##_reduce_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source,        \
                                                size_t nreduce, cudaStream_t stream);                       \
  int nvshmemx_##NAME##_##OP##_reducescatter_on_stream(nvshmem_team_t team, TYPE* dest, const TYPE* source, \
                                                       size_t nreduce, cudaStream_t stream);
#define ECHOLO_X(NAME, TYPE) \
  ECHOLO_REDUCE(NAME, TYPE, and) ECHOLO_REDUCE(NAME, TYPE, or) ECHOLO_REDUCE(NAME, TYPE, xor)
ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)     \
  ECHOLO_REDUCE(NAME, TYPE, max) \
  ECHOLO_REDUCE(NAME, TYPE, min) ECHOLO_REDUCE(NAME, TYPE, sum) ECHOLO_REDUCE(NAME, TYPE, prod)
ECHOLO_SHMEM_ARITH_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#undef ECHOLO_REDUCE

#ifdef __CUDACC__
// ---- device: all threads of the warp or block call with the same arguments ----
#define ECHOLO_X(NAME, TYPE)                                                                                 \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_warp(TYPE* dest, const TYPE* source, size_t nelems, int pe);     \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_nbi_warp(TYPE* dest, const TYPE* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_get_warp(TYPE* dest, const TYPE* source, size_t nelems, int pe);     \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_get_nbi_warp(TYPE* dest, const TYPE* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_iput_warp(TYPE* dest, const TYPE* source, ptrdiff_t dst,             \
                                                  ptrdiff_t sst, size_t nelems, int pe);                     \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_iget_warp(TYPE* dest, const TYPE* source, ptrdiff_t dst,             \
                                                  ptrdiff_t sst, size_t nelems, int pe);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                      \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_warp(void* dest, const void* source, size_t nelems, int pe);     \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_nbi_warp(void* dest, const void* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_get##BITS##_warp(void* dest, const void* source, size_t nelems, int pe);     \
  ECHOLO_SHMEM_D void nvshmemx_get##BITS##_nbi_warp(void* dest, const void* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_iput##BITS##_warp(void* dest, const void* source, ptrdiff_t dst,             \
                                                 ptrdiff_t sst, size_t nelems, int pe);                     \
  ECHOLO_SHMEM_D void nvshmemx_iget##BITS##_warp(void* dest, const void* source, ptrdiff_t dst,             \
                                                 ptrdiff_t sst, size_t nelems, int pe);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D void nvshmemx_putmem_warp(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_D void nvshmemx_putmem_nbi_warp(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_D void nvshmemx_getmem_warp(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_D void nvshmemx_getmem_nbi_warp(void* dest, const void* source, size_t bytes, int pe);
#define ECHOLO_X(NAME, TYPE)                                                                                 \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_signal_warp(TYPE* dest, const TYPE* source, size_t nelems,       \
                                                        uint64_t* sig_addr, uint64_t signal, int sig_op,     \
                                                        int pe);                                             \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_signal_nbi_warp(TYPE* dest, const TYPE* source, size_t nelems,   \
                                                            uint64_t* sig_addr, uint64_t signal, int sig_op, \
                                                            int pe);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                      \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_signal_warp(void* dest, const void* source, size_t nelems,       \
                                                       uint64_t* sig_addr, uint64_t signal, int sig_op,     \
                                                       int pe);                                             \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_signal_nbi_warp(void* dest, const void* source, size_t nelems,   \
                                                           uint64_t* sig_addr, uint64_t signal, int sig_op, \
                                                           int pe);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D void nvshmemx_putmem_signal_warp(void* dest, const void* source, size_t bytes,
                                                uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
ECHOLO_SHMEM_D void nvshmemx_putmem_signal_nbi_warp(void* dest, const void* source, size_t bytes,
                                                    uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
#define ECHOLO_X(NAME, TYPE)                                                                               \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_alltoall_warp(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                                     size_t nelems);                                       \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_fcollect_warp(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                                     size_t nelems);                                       \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_broadcast_warp(nvshmem_team_t team, TYPE* dest, const TYPE* source, \
                                                      size_t nelems, int pe_root);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D int nvshmemx_alltoallmem_warp(nvshmem_team_t team, void* dest, const void* source,
                                             size_t bytes);
ECHOLO_SHMEM_D int nvshmemx_fcollectmem_warp(nvshmem_team_t team, void* dest, const void* source,
                                             size_t bytes);
ECHOLO_SHMEM_D int nvshmemx_broadcastmem_warp(nvshmem_team_t team, void* dest, const void* source,
                                              size_t bytes, int pe_root);
#define ECHOLO_REDUCE(NAME, TYPE, OP)                                                             \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_##OP##_reduce_warp(nvshmem_team_t team, TYPE* dest,        \
                                                          const TYPE* source, size_t nreduce);    \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_##OP##_reducescatter_warp(nvshmem_team_t team, TYPE* dest, \
                                                                 const TYPE* source, size_t nreduce);
#define ECHOLO_X(NAME, TYPE) \
  ECHOLO_REDUCE(NAME, TYPE, and) ECHOLO_REDUCE(NAME, TYPE, or) ECHOLO_REDUCE(NAME, TYPE, xor)
ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)     \
  ECHOLO_REDUCE(NAME, TYPE, max) \
  ECHOLO_REDUCE(NAME, TYPE, min) ECHOLO_REDUCE(NAME, TYPE, sum) ECHOLO_REDUCE(NAME, TYPE, prod)
ECHOLO_SHMEM_ARITH_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#undef ECHOLO_REDUCE
ECHOLO_SHMEM_D int nvshmemx_barrier_warp(nvshmem_team_t team);
ECHOLO_SHMEM_D void nvshmemx_barrier_all_warp(void);
ECHOLO_SHMEM_D int nvshmemx_team_sync_warp(nvshmem_team_t team);
ECHOLO_SHMEM_D void nvshmemx_sync_all_warp(void);

#define ECHOLO_X(NAME, TYPE)                                                                              \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_block(TYPE* dest, const TYPE* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_nbi_block(TYPE* dest, const TYPE* source, size_t nelems,      \
                                                      int pe);                                            \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_get_block(TYPE* dest, const TYPE* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_get_nbi_block(TYPE* dest, const TYPE* source, size_t nelems,      \
                                                      int pe);                                            \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_iput_block(TYPE* dest, const TYPE* source, ptrdiff_t dst,         \
                                                   ptrdiff_t sst, size_t nelems, int pe);                 \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_iget_block(TYPE* dest, const TYPE* source, ptrdiff_t dst,         \
                                                   ptrdiff_t sst, size_t nelems, int pe);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                       \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_block(void* dest, const void* source, size_t nelems, int pe);     \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_nbi_block(void* dest, const void* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_get##BITS##_block(void* dest, const void* source, size_t nelems, int pe);     \
  ECHOLO_SHMEM_D void nvshmemx_get##BITS##_nbi_block(void* dest, const void* source, size_t nelems, int pe); \
  ECHOLO_SHMEM_D void nvshmemx_iput##BITS##_block(void* dest, const void* source, ptrdiff_t dst,             \
                                                  ptrdiff_t sst, size_t nelems, int pe);                     \
  ECHOLO_SHMEM_D void nvshmemx_iget##BITS##_block(void* dest, const void* source, ptrdiff_t dst,             \
                                                  ptrdiff_t sst, size_t nelems, int pe);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D void nvshmemx_putmem_block(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_D void nvshmemx_putmem_nbi_block(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_D void nvshmemx_getmem_block(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_D void nvshmemx_getmem_nbi_block(void* dest, const void* source, size_t bytes, int pe);
#define ECHOLO_X(NAME, TYPE)                                                                                \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_signal_block(TYPE* dest, const TYPE* source, size_t nelems,     \
                                                         uint64_t* sig_addr, uint64_t signal, int sig_op,   \
                                                         int pe);                                           \
  ECHOLO_SHMEM_D void nvshmemx_##NAME##_put_signal_nbi_block(TYPE* dest, const TYPE* source, size_t nelems, \
                                                             uint64_t* sig_addr, uint64_t signal,           \
                                                             int sig_op, int pe);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                       \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_signal_block(void* dest, const void* source, size_t nelems,       \
                                                        uint64_t* sig_addr, uint64_t signal, int sig_op,     \
                                                        int pe);                                             \
  ECHOLO_SHMEM_D void nvshmemx_put##BITS##_signal_nbi_block(void* dest, const void* source, size_t nelems,   \
                                                            uint64_t* sig_addr, uint64_t signal, int sig_op, \
                                                            int pe);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D void nvshmemx_putmem_signal_block(void* dest, const void* source, size_t bytes,
                                                 uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
ECHOLO_SHMEM_D void nvshmemx_putmem_signal_nbi_block(void* dest, const void* source, size_t bytes,
                                                     uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
#define ECHOLO_X(NAME, TYPE)                                                                                \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_alltoall_block(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                                      size_t nelems);                                       \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_fcollect_block(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                                      size_t nelems);                                       \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_broadcast_block(nvshmem_team_t team, TYPE* dest, const TYPE* source, \
                                                       size_t nelems, int pe_root);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D int nvshmemx_alltoallmem_block(nvshmem_team_t team, void* dest, const void* source,
                                              size_t bytes);
ECHOLO_SHMEM_D int nvshmemx_fcollectmem_block(nvshmem_team_t team, void* dest, const void* source,
                                              size_t bytes);
ECHOLO_SHMEM_D int nvshmemx_broadcastmem_block(nvshmem_team_t team, void* dest, const void* source,
                                               size_t bytes, int pe_root);
#define ECHOLO_REDUCE(NAME, TYPE, OP)                                                              \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_##OP##_reduce_block(nvshmem_team_t team, TYPE* dest,        \
                                                           const TYPE* source, size_t nreduce);    \
  ECHOLO_SHMEM_D int nvshmemx_##NAME##_##OP##_reducescatter_block(nvshmem_team_t team, TYPE* dest, \
                                                                  const TYPE* source, size_t nreduce);
#define ECHOLO_X(NAME, TYPE) \
  ECHOLO_REDUCE(NAME, TYPE, and) ECHOLO_REDUCE(NAME, TYPE, or) ECHOLO_REDUCE(NAME, TYPE, xor)
ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)     \
  ECHOLO_REDUCE(NAME, TYPE, max) \
  ECHOLO_REDUCE(NAME, TYPE, min) ECHOLO_REDUCE(NAME, TYPE, sum) ECHOLO_REDUCE(NAME, TYPE, prod)
ECHOLO_SHMEM_ARITH_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#undef ECHOLO_REDUCE
ECHOLO_SHMEM_D int nvshmemx_barrier_block(nvshmem_team_t team);
ECHOLO_SHMEM_D void nvshmemx_barrier_all_block(void);
ECHOLO_SHMEM_D int nvshmemx_team_sync_block(nvshmem_team_t team);
ECHOLO_SHMEM_D void nvshmemx_sync_all_block(void);

#endif  // __CUDACC__

#ifdef __cplusplus
}
#endif

#endif
