// The NVSHMEM API as the virtual node offers it. Device functions are declarations only: a put, a fence or a
// signal arrives at the executor as what it means, not as inlined stores. Host functions are in
// libnvshmem_host of the virtual node. Names, argument order and meaning follow the NVSHMEM documentation; a
// function that is not declared here is not there, and a candidate that uses it is refused at compile time.
#ifndef ECHOLO_NVSHMEM_H
#define ECHOLO_NVSHMEM_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include "nvshmem_types_list.h"

#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_VENDOR_STRING "EcholoKernel virtual node, NVSHMEM API 3.4"
#define NVSHMEM_MAX_NAME_LEN 256

#ifdef __CUDACC__
#define ECHOLO_SHMEM_HD __host__ __device__
#define ECHOLO_SHMEM_D __device__
#else
#define ECHOLO_SHMEM_HD
#endif

enum { NVSHMEM_CMP_EQ = 0, NVSHMEM_CMP_NE, NVSHMEM_CMP_GT, NVSHMEM_CMP_LE, NVSHMEM_CMP_LT, NVSHMEM_CMP_GE };
enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };
enum {
  NVSHMEM_THREAD_SINGLE = 0,
  NVSHMEM_THREAD_FUNNELED,
  NVSHMEM_THREAD_SERIALIZED,
  NVSHMEM_THREAD_MULTIPLE
};
enum {
  NVSHMEM_STATUS_NOT_INITIALIZED = 0,
  NVSHMEM_STATUS_IS_BOOTSTRAPPED,
  NVSHMEM_STATUS_IS_INITIALIZED,
  NVSHMEM_STATUS_LIMITED_MPG,
  NVSHMEM_STATUS_FULL_MPG
};

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;
enum {
  NVSHMEM_TEAM_INVALID = -1,
  NVSHMEM_TEAM_WORLD = 0,
  NVSHMEM_TEAM_SHARED = 1,
  NVSHMEMX_TEAM_NODE = 2,
  NVSHMEMX_TEAM_SAME_MYPE_NODE = 3
};
typedef struct {
  int num_contexts;
} nvshmem_team_config_t;
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1L
#define NVSHMEM_TEAM_CONFIG_INITIALIZER \
  { -1 }

#ifdef __cplusplus
extern "C" {
#endif

// ---- library setup, exit and query ----
void nvshmem_init(void);
int nvshmem_init_thread(int requested, int* provided);
void nvshmem_query_thread(int* provided);
void nvshmem_finalize(void);
void nvshmem_global_exit(int status);
int nvshmemx_init_status(void);
ECHOLO_SHMEM_HD int nvshmem_my_pe(void);
ECHOLO_SHMEM_HD int nvshmem_n_pes(void);
void nvshmem_info_get_version(int* major, int* minor);
void nvshmem_info_get_name(char* name);
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch);

// ---- symmetric heap ----
void* nvshmem_malloc(size_t size);
void* nvshmem_calloc(size_t count, size_t size);
void* nvshmem_align(size_t alignment, size_t size);
void nvshmem_free(void* ptr);
ECHOLO_SHMEM_HD void* nvshmem_ptr(const void* dest, int pe);

// ---- teams ----
ECHOLO_SHMEM_HD int nvshmem_team_my_pe(nvshmem_team_t team);
ECHOLO_SHMEM_HD int nvshmem_team_n_pes(nvshmem_team_t team);
ECHOLO_SHMEM_HD int nvshmem_team_translate_pe(nvshmem_team_t source_team, int source_pe,
                                              nvshmem_team_t dest_team);
int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size,
                               const nvshmem_team_config_t* config, long config_mask,
                               nvshmem_team_t* new_team);
int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange, const nvshmem_team_config_t* xaxis_config,
                          long xaxis_mask, nvshmem_team_t* xaxis_team,
                          const nvshmem_team_config_t* yaxis_config, long yaxis_mask,
                          nvshmem_team_t* yaxis_team);
int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config);
void nvshmem_team_destroy(nvshmem_team_t team);

// ---- ordering and barriers ----
ECHOLO_SHMEM_HD void nvshmem_quiet(void);
ECHOLO_SHMEM_HD void nvshmem_fence(void);
ECHOLO_SHMEM_HD void nvshmem_barrier_all(void);
ECHOLO_SHMEM_HD void nvshmem_sync_all(void);
ECHOLO_SHMEM_HD int nvshmem_barrier(nvshmem_team_t team);
ECHOLO_SHMEM_HD int nvshmem_team_sync(nvshmem_team_t team);
#define nvshmem_sync nvshmem_team_sync

// ---- remote memory access ----
#define ECHOLO_X(NAME, TYPE)                                                                               \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_p(TYPE* dest, const TYPE value, int pe);                           \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_g(const TYPE* source, int pe);                                     \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_put(TYPE* dest, const TYPE* source, size_t nelems, int pe);        \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_put_nbi(TYPE* dest, const TYPE* source, size_t nelems, int pe);    \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_get(TYPE* dest, const TYPE* source, size_t nelems, int pe);        \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_get_nbi(TYPE* dest, const TYPE* source, size_t nelems, int pe);    \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_iput(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                                             size_t nelems, int pe);                                       \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_iget(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                                             size_t nelems, int pe);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                  \
  ECHOLO_SHMEM_HD void nvshmem_put##BITS(void* dest, const void* source, size_t nelems, int pe);        \
  ECHOLO_SHMEM_HD void nvshmem_put##BITS##_nbi(void* dest, const void* source, size_t nelems, int pe);  \
  ECHOLO_SHMEM_HD void nvshmem_get##BITS(void* dest, const void* source, size_t nelems, int pe);        \
  ECHOLO_SHMEM_HD void nvshmem_get##BITS##_nbi(void* dest, const void* source, size_t nelems, int pe);  \
  ECHOLO_SHMEM_HD void nvshmem_iput##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, \
                                          size_t nelems, int pe);                                       \
  ECHOLO_SHMEM_HD void nvshmem_iget##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, \
                                          size_t nelems, int pe);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_HD void nvshmem_putmem(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_HD void nvshmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_HD void nvshmem_getmem(void* dest, const void* source, size_t bytes, int pe);
ECHOLO_SHMEM_HD void nvshmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe);

// ---- atomic memory operations ----
#define ECHOLO_X(NAME, TYPE)                                                              \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch(const TYPE* source, int pe);         \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_set(TYPE* dest, TYPE value, int pe);       \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_swap(TYPE* dest, TYPE value, int pe);      \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_inc(TYPE* dest, int pe);                   \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch_inc(TYPE* dest, int pe);             \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_add(TYPE* dest, TYPE value, int pe);       \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch_add(TYPE* dest, TYPE value, int pe); \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_compare_swap(TYPE* dest, TYPE cond, TYPE value, int pe);
ECHOLO_SHMEM_STANDARD_AMO_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)                                                         \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch(const TYPE* source, int pe);    \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_set(TYPE* dest, TYPE value, int pe);  \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_swap(TYPE* dest, TYPE value, int pe); \
  ECHOLO_SHMEM_HD void nvshmemx_##NAME##_atomic_add(TYPE* dest, TYPE value, int pe); \
  ECHOLO_SHMEM_HD TYPE nvshmemx_##NAME##_atomic_fetch_add(TYPE* dest, TYPE value, int pe);
ECHOLO_SHMEM_EXTENDED_AMO_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)                                                              \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_and(TYPE* dest, TYPE value, int pe);       \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_or(TYPE* dest, TYPE value, int pe);        \
  ECHOLO_SHMEM_HD void nvshmem_##NAME##_atomic_xor(TYPE* dest, TYPE value, int pe);       \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch_and(TYPE* dest, TYPE value, int pe); \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch_or(TYPE* dest, TYPE value, int pe);  \
  ECHOLO_SHMEM_HD TYPE nvshmem_##NAME##_atomic_fetch_xor(TYPE* dest, TYPE value, int pe);
ECHOLO_SHMEM_BITWISE_AMO_TYPES(ECHOLO_X)
#undef ECHOLO_X

// ---- collectives ----
#define ECHOLO_X(NAME, TYPE)                                                                          \
  ECHOLO_SHMEM_HD int nvshmem_##NAME##_alltoall(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                                size_t nelems);                                       \
  ECHOLO_SHMEM_HD int nvshmem_##NAME##_fcollect(nvshmem_team_t team, TYPE* dest, const TYPE* source,  \
                                                size_t nelems);                                       \
  ECHOLO_SHMEM_HD int nvshmem_##NAME##_broadcast(nvshmem_team_t team, TYPE* dest, const TYPE* source, \
                                                 size_t nelems, int pe_root);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_HD int nvshmem_alltoallmem(nvshmem_team_t team, void* dest, const void* source, size_t bytes);
ECHOLO_SHMEM_HD int nvshmem_fcollectmem(nvshmem_team_t team, void* dest, const void* source, size_t bytes);
ECHOLO_SHMEM_HD int nvshmem_broadcastmem(nvshmem_team_t team, void* dest, const void* source, size_t bytes,
                                         int pe_root);
#define ECHOLO_REDUCE(NAME, TYPE, OP)                                                                     \
  ECHOLO_SHMEM_HD int nvshmem_##NAME##_##OP##_reduce(nvshmem_team_t team, TYPE* dest, const TYPE* source, \
                                                     size_t nreduce);                                     \
  ECHOLO_SHMEM_HD int nvshmem_##NAME##_##OP##_reducescatter(nvshmem_team_t team, TYPE* dest,              \
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

ECHOLO_SHMEM_HD uint64_t nvshmem_signal_fetch(uint64_t* sig_addr);

#ifdef __CUDACC__
// ---- put with signal (device) ----
#define ECHOLO_X(NAME, TYPE)                                                                                \
  ECHOLO_SHMEM_D void nvshmem_##NAME##_put_signal(TYPE* dest, const TYPE* source, size_t nelems,            \
                                                  uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  ECHOLO_SHMEM_D void nvshmem_##NAME##_put_signal_nbi(TYPE* dest, const TYPE* source, size_t nelems,        \
                                                      uint64_t* sig_addr, uint64_t signal, int sig_op,      \
                                                      int pe);
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(BITS)                                                                                     \
  ECHOLO_SHMEM_D void nvshmem_put##BITS##_signal(void* dest, const void* source, size_t nelems,            \
                                                 uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  ECHOLO_SHMEM_D void nvshmem_put##BITS##_signal_nbi(void* dest, const void* source, size_t nelems,        \
                                                     uint64_t* sig_addr, uint64_t signal, int sig_op,      \
                                                     int pe);
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X
ECHOLO_SHMEM_D void nvshmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                          uint64_t signal, int sig_op, int pe);
ECHOLO_SHMEM_D void nvshmem_putmem_signal_nbi(void* dest, const void* source, size_t bytes,
                                              uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);

// ---- point-to-point synchronisation (device) ----
ECHOLO_SHMEM_D uint64_t nvshmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value);
#define ECHOLO_X(NAME, TYPE)                                                                                \
  ECHOLO_SHMEM_D void nvshmem_##NAME##_wait_until(TYPE* ivar, int cmp, TYPE cmp_value);                     \
  ECHOLO_SHMEM_D int nvshmem_##NAME##_test(TYPE* ivar, int cmp, TYPE cmp_value);                            \
  ECHOLO_SHMEM_D void nvshmem_##NAME##_wait_until_all(TYPE* ivars, size_t nelems, const int* status,        \
                                                      int cmp, TYPE cmp_value);                             \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_wait_until_any(TYPE* ivars, size_t nelems, const int* status,      \
                                                        int cmp, TYPE cmp_value);                           \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_wait_until_some(TYPE* ivars, size_t nelems, size_t* indices,       \
                                                         const int* status, int cmp, TYPE cmp_value);       \
  ECHOLO_SHMEM_D int nvshmem_##NAME##_test_all(TYPE* ivars, size_t nelems, const int* status, int cmp,      \
                                               TYPE cmp_value);                                             \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_test_any(TYPE* ivars, size_t nelems, const int* status, int cmp,   \
                                                  TYPE cmp_value);                                          \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_test_some(TYPE* ivars, size_t nelems, size_t* indices,             \
                                                   const int* status, int cmp, TYPE cmp_value);             \
  ECHOLO_SHMEM_D void nvshmem_##NAME##_wait_until_all_vector(TYPE* ivars, size_t nelems, const int* status, \
                                                             int cmp, TYPE* cmp_values);                    \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_wait_until_any_vector(                                             \
      TYPE* ivars, size_t nelems, const int* status, int cmp, TYPE* cmp_values);                            \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_wait_until_some_vector(                                            \
      TYPE* ivars, size_t nelems, size_t* indices, const int* status, int cmp, TYPE* cmp_values);           \
  ECHOLO_SHMEM_D int nvshmem_##NAME##_test_all_vector(TYPE* ivars, size_t nelems, const int* status,        \
                                                      int cmp, TYPE* cmp_values);                           \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_test_any_vector(TYPE* ivars, size_t nelems, const int* status,     \
                                                         int cmp, TYPE* cmp_values);                        \
  ECHOLO_SHMEM_D size_t nvshmem_##NAME##_test_some_vector(TYPE* ivars, size_t nelems, size_t* indices,      \
                                                          const int* status, int cmp, TYPE* cmp_values);
ECHOLO_SHMEM_WAIT_TYPES(ECHOLO_X)
#undef ECHOLO_X
#endif  // __CUDACC__

#ifdef __cplusplus
}
#endif

#endif
