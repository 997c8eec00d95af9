// The typed functions of the NVSHMEM host library, expanded over the type lists that the header for
// candidates uses.
#include "runtime/pe/nvshmem_host.hpp"

using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

extern "C" {

// ---- remote memory access ----
#define ECHOLO_X(NAME, TYPE)                                                                                 \
  void nvshmem_##NAME##_p(TYPE* d, const TYPE v, int pe) { forward("nvshmem_" #NAME "_p", d, bits(v), pe); } \
  TYPE nvshmem_##NAME##_g(const TYPE* s, int pe) {                                                           \
    return value_of<TYPE>(forward("nvshmem_" #NAME "_g", s, pe));                                            \
  }                                                                                                          \
  void nvshmem_##NAME##_put(TYPE* d, const TYPE* s, size_t n, int pe) {                                      \
    forward("nvshmem_" #NAME "_put", d, s, n, pe);                                                           \
  }                                                                                                          \
  void nvshmem_##NAME##_put_nbi(TYPE* d, const TYPE* s, size_t n, int pe) {                                  \
    forward("nvshmem_" #NAME "_put_nbi", d, s, n, pe);                                                       \
  }                                                                                                          \
  void nvshmem_##NAME##_get(TYPE* d, const TYPE* s, size_t n, int pe) {                                      \
    forward("nvshmem_" #NAME "_get", d, s, n, pe);                                                           \
  }                                                                                                          \
  void nvshmem_##NAME##_get_nbi(TYPE* d, const TYPE* s, size_t n, int pe) {                                  \
    forward("nvshmem_" #NAME "_get_nbi", d, s, n, pe);                                                       \
  }                                                                                                          \
  void nvshmem_##NAME##_iput(TYPE* d, const TYPE* s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {       \
    forward("nvshmem_" #NAME "_iput", d, s, dst, sst, n, pe);                                                \
  }                                                                                                          \
  void nvshmem_##NAME##_iget(TYPE* d, const TYPE* s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {       \
    forward("nvshmem_" #NAME "_iget", d, s, dst, sst, n, pe);                                                \
  }                                                                                                          \
  void nvshmemx_##NAME##_p_on_stream(TYPE* d, const TYPE v, int pe, cudaStream_t q) {                        \
    forward_on(q, "nvshmemx_" #NAME "_p_on_stream", d, bits(v), pe);                                         \
  }                                                                                                          \
  TYPE nvshmemx_##NAME##_g_on_stream(const TYPE* s, int pe, cudaStream_t q) {                                \
    return value_of<TYPE>(forward_on(q, "nvshmemx_" #NAME "_g_on_stream", s, pe));                           \
  }                                                                                                          \
  void nvshmemx_##NAME##_put_on_stream(TYPE* d, const TYPE* s, size_t n, int pe, cudaStream_t q) {           \
    forward_on(q, "nvshmemx_" #NAME "_put_on_stream", d, s, n, pe);                                          \
  }                                                                                                          \
  void nvshmemx_##NAME##_put_nbi_on_stream(TYPE* d, const TYPE* s, size_t n, int pe, cudaStream_t q) {       \
    forward_on(q, "nvshmemx_" #NAME "_put_nbi_on_stream", d, s, n, pe);                                      \
  }                                                                                                          \
  void nvshmemx_##NAME##_get_on_stream(TYPE* d, const TYPE* s, size_t n, int pe, cudaStream_t q) {           \
    forward_on(q, "nvshmemx_" #NAME "_get_on_stream", d, s, n, pe);                                          \
  }                                                                                                          \
  void nvshmemx_##NAME##_get_nbi_on_stream(TYPE* d, const TYPE* s, size_t n, int pe, cudaStream_t q) {       \
    forward_on(q, "nvshmemx_" #NAME "_get_nbi_on_stream", d, s, n, pe);                                      \
  }                                                                                                          \
  void nvshmemx_##NAME##_iput_on_stream(TYPE* d, const TYPE* s, ptrdiff_t dst, ptrdiff_t sst, size_t n,      \
                                        int pe, cudaStream_t q) {                                            \
    forward_on(q, "nvshmemx_" #NAME "_iput_on_stream", d, s, dst, sst, n, pe);                               \
  }                                                                                                          \
  void nvshmemx_##NAME##_iget_on_stream(TYPE* d, const TYPE* s, ptrdiff_t dst, ptrdiff_t sst, size_t n,      \
                                        int pe, cudaStream_t q) {                                            \
    forward_on(q, "nvshmemx_" #NAME "_iget_on_stream", d, s, dst, sst, n, pe);                               \
  }                                                                                                          \
  void nvshmemx_##NAME##_put_signal_on_stream(TYPE* d, const TYPE* s, size_t n, uint64_t* signal,            \
                                              uint64_t v, int op, int pe, cudaStream_t q) {                  \
    forward_on(q, "nvshmemx_" #NAME "_put_signal_on_stream", d, s, n, signal, v, op, pe);                    \
  }                                                                                                          \
  void nvshmemx_##NAME##_put_signal_nbi_on_stream(TYPE* d, const TYPE* s, size_t n, uint64_t* signal,        \
                                                  uint64_t v, int op, int pe, cudaStream_t q) {              \
    forward_on(q, "nvshmemx_" #NAME "_put_signal_nbi_on_stream", d, s, n, signal, v, op, pe);                \
  }                                                                                                          \
  int nvshmem_##NAME##_alltoall(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n) {                        \
    return static_cast<int>(forward("nvshmem_" #NAME "_alltoall", t, d, s, n));                              \
  }                                                                                                          \
  int nvshmem_##NAME##_fcollect(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n) {                        \
    return static_cast<int>(forward("nvshmem_" #NAME "_fcollect", t, d, s, n));                              \
  }                                                                                                          \
  int nvshmem_##NAME##_broadcast(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n, int root) {             \
    return static_cast<int>(forward("nvshmem_" #NAME "_broadcast", t, d, s, n, root));                       \
  }                                                                                                          \
  int nvshmemx_##NAME##_alltoall_on_stream(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n,               \
                                           cudaStream_t q) {                                                 \
    return static_cast<int>(forward_on(q, "nvshmemx_" #NAME "_alltoall_on_stream", t, d, s, n));             \
  }                                                                                                          \
  int nvshmemx_##NAME##_fcollect_on_stream(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n,               \
                                           cudaStream_t q) {                                                 \
    return static_cast<int>(forward_on(q, "nvshmemx_" #NAME "_fcollect_on_stream", t, d, s, n));             \
  }                                                                                                          \
  int nvshmemx_##NAME##_broadcast_on_stream(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n, int root,    \
                                            cudaStream_t q) {                                                \
    return static_cast<int>(forward_on(q, "nvshmemx_" #NAME "_broadcast_on_stream", t, d, s, n, root));      \
  }
ECHOLO_SHMEM_RMA_TYPES(ECHOLO_X)
#undef ECHOLO_X

#define ECHOLO_X(BITS)                                                                                       \
  void nvshmem_put##BITS(void* d, const void* s, size_t n, int pe) {                                         \
    forward("nvshmem_put" #BITS, d, s, n, pe);                                                               \
  }                                                                                                          \
  void nvshmem_put##BITS##_nbi(void* d, const void* s, size_t n, int pe) {                                   \
    forward("nvshmem_put" #BITS "_nbi", d, s, n, pe);                                                        \
  }                                                                                                          \
  void nvshmem_get##BITS(void* d, const void* s, size_t n, int pe) {                                         \
    forward("nvshmem_get" #BITS, d, s, n, pe);                                                               \
  }                                                                                                          \
  void nvshmem_get##BITS##_nbi(void* d, const void* s, size_t n, int pe) {                                   \
    forward("nvshmem_get" #BITS "_nbi", d, s, n, pe);                                                        \
  }                                                                                                          \
  void nvshmem_iput##BITS(void* d, const void* s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {          \
    forward("nvshmem_iput" #BITS, d, s, dst, sst, n, pe);                                                    \
  }                                                                                                          \
  void nvshmem_iget##BITS(void* d, const void* s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {          \
    forward("nvshmem_iget" #BITS, d, s, dst, sst, n, pe);                                                    \
  }                                                                                                          \
  void nvshmemx_put##BITS##_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {            \
    forward_on(q, "nvshmemx_put" #BITS "_on_stream", d, s, n, pe);                                           \
  }                                                                                                          \
  void nvshmemx_put##BITS##_nbi_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {        \
    forward_on(q, "nvshmemx_put" #BITS "_nbi_on_stream", d, s, n, pe);                                       \
  }                                                                                                          \
  void nvshmemx_get##BITS##_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {            \
    forward_on(q, "nvshmemx_get" #BITS "_on_stream", d, s, n, pe);                                           \
  }                                                                                                          \
  void nvshmemx_get##BITS##_nbi_on_stream(void* d, const void* s, size_t n, int pe, cudaStream_t q) {        \
    forward_on(q, "nvshmemx_get" #BITS "_nbi_on_stream", d, s, n, pe);                                       \
  }                                                                                                          \
  void nvshmemx_iput##BITS##_on_stream(void* d, const void* s, ptrdiff_t dst, ptrdiff_t sst, size_t n,       \
                                       int pe, cudaStream_t q) {                                             \
    forward_on(q, "nvshmemx_iput" #BITS "_on_stream", d, s, dst, sst, n, pe);                                \
  }                                                                                                          \
  void nvshmemx_iget##BITS##_on_stream(void* d, const void* s, ptrdiff_t dst, ptrdiff_t sst, size_t n,       \
                                       int pe, cudaStream_t q) {                                             \
    forward_on(q, "nvshmemx_iget" #BITS "_on_stream", d, s, dst, sst, n, pe);                                \
  }                                                                                                          \
  void nvshmemx_put##BITS##_signal_on_stream(void* d, const void* s, size_t n, uint64_t* signal, uint64_t v, \
                                             int op, int pe, cudaStream_t q) {                               \
    forward_on(q, "nvshmemx_put" #BITS "_signal_on_stream", d, s, n, signal, v, op, pe);                     \
  }                                                                                                          \
  void nvshmemx_put##BITS##_signal_nbi_on_stream(void* d, const void* s, size_t n, uint64_t* signal,         \
                                                 uint64_t v, int op, int pe, cudaStream_t q) {               \
    forward_on(q, "nvshmemx_put" #BITS "_signal_nbi_on_stream", d, s, n, signal, v, op, pe);                 \
  }
ECHOLO_SHMEM_SIZES(ECHOLO_X)
#undef ECHOLO_X

#define ECHOLO_X(NAME, TYPE)                                                                             \
  void nvshmemx_##NAME##_wait_until_on_stream(TYPE* p, int cmp, TYPE v, cudaStream_t q) {                \
    forward_on(q, "nvshmemx_" #NAME "_wait_until_on_stream", p, cmp, bits(v));                           \
  }                                                                                                      \
  void nvshmemx_##NAME##_wait_until_all_on_stream(TYPE* p, size_t n, const int* status, int cmp, TYPE v, \
                                                  cudaStream_t q) {                                      \
    forward_on(q, "nvshmemx_" #NAME "_wait_until_all_on_stream", p, n, status, cmp, bits(v));            \
  }                                                                                                      \
  void nvshmemx_##NAME##_wait_until_all_vector_on_stream(TYPE* p, size_t n, const int* status, int cmp,  \
                                                         TYPE* v, cudaStream_t q) {                      \
    forward_on(q, "nvshmemx_" #NAME "_wait_until_all_vector_on_stream", p, n, status, cmp, v);           \
  }
ECHOLO_SHMEM_WAIT_TYPES(ECHOLO_X)
#undef ECHOLO_X

// ---- atomics ----
#define ECHOLO_FETCH_SET_SWAP(NAME, TYPE)                                            \
  TYPE nvshmem_##NAME##_atomic_fetch(const TYPE* s, int pe) {                        \
    return value_of<TYPE>(forward("nvshmem_" #NAME "_atomic_fetch", s, pe));         \
  }                                                                                  \
  void nvshmem_##NAME##_atomic_set(TYPE* d, TYPE v, int pe) {                        \
    forward("nvshmem_" #NAME "_atomic_set", d, bits(v), pe);                         \
  }                                                                                  \
  TYPE nvshmem_##NAME##_atomic_swap(TYPE* d, TYPE v, int pe) {                       \
    return value_of<TYPE>(forward("nvshmem_" #NAME "_atomic_swap", d, bits(v), pe)); \
  }
#define ECHOLO_UPDATE(PREFIX, NAME, TYPE, OP)                                               \
  void PREFIX##_##NAME##_atomic_##OP(TYPE* d, TYPE v, int pe) {                             \
    forward(#PREFIX "_" #NAME "_atomic_" #OP, d, bits(v), pe);                              \
  }                                                                                         \
  TYPE PREFIX##_##NAME##_atomic_fetch_##OP(TYPE* d, TYPE v, int pe) {                       \
    return value_of<TYPE>(forward(#PREFIX "_" #NAME "_atomic_fetch_" #OP, d, bits(v), pe)); \
  }
#define ECHOLO_X(NAME, TYPE)                                                                            \
  ECHOLO_FETCH_SET_SWAP(NAME, TYPE)                                                                     \
  ECHOLO_UPDATE(nvshmem, NAME, TYPE, add)                                                               \
  void nvshmem_##NAME##_atomic_inc(TYPE* d, int pe) { forward("nvshmem_" #NAME "_atomic_inc", d, pe); } \
  TYPE nvshmem_##NAME##_atomic_fetch_inc(TYPE* d, int pe) {                                             \
    return value_of<TYPE>(forward("nvshmem_" #NAME "_atomic_fetch_inc", d, pe));                        \
  }                                                                                                     \
  TYPE nvshmem_##NAME##_atomic_compare_swap(TYPE* d, TYPE c, TYPE v, int pe) {                          \
    return value_of<TYPE>(forward("nvshmem_" #NAME "_atomic_compare_swap", d, bits(c), bits(v), pe));   \
  }
ECHOLO_SHMEM_STANDARD_AMO_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE) ECHOLO_FETCH_SET_SWAP(NAME, TYPE) ECHOLO_UPDATE(nvshmemx, NAME, TYPE, add)
ECHOLO_SHMEM_EXTENDED_AMO_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)              \
  ECHOLO_UPDATE(nvshmem, NAME, TYPE, and) \
  ECHOLO_UPDATE(nvshmem, NAME, TYPE, or) ECHOLO_UPDATE(nvshmem, NAME, TYPE, xor)
ECHOLO_SHMEM_BITWISE_AMO_TYPES(ECHOLO_X)
#undef ECHOLO_X

// ---- reductions ----
#define ECHOLO_REDUCE(NAME, TYPE, OP)                                                                      \
  int nvshmem_##NAME##_##OP##_reduce(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n) {                 \
    return static_cast<int>(forward("nvshmem_" #NAME "_" #OP "_reduce", t, d, s, n));                      \
  }                                                                                                        \
  int nvshmem_##NAME##_##OP##_reducescatter(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n) {          \
    return static_cast<int>(forward("nvshmem_" #NAME "_" #OP "_reducescatter", t, d, s, n));               \
  }                                                                                                        \
  int nvshmemx_##NAME##_##OP##_reduce_on_stream(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n,        \
                                                cudaStream_t q) {                                          \
    return static_cast<int>(forward_on(q, "nvshmemx_" #NAME "_" #OP "_reduce_on_stream", t, d, s, n));     \
  }                                                                                                        \
  int nvshmemx_##NAME##_##OP##_reducescatter_on_stream(nvshmem_team_t t, TYPE* d, const TYPE* s, size_t n, \
                                                       cudaStream_t q) {                                   \
    return static_cast<int>(                                                                               \
        forward_on(q, "nvshmemx_" #NAME "_" #OP "_reducescatter_on_stream", t, d, s, n));                  \
  }
#define ECHOLO_X(NAME, TYPE) \
  ECHOLO_REDUCE(NAME, TYPE, and) ECHOLO_REDUCE(NAME, TYPE, or) ECHOLO_REDUCE(NAME, TYPE, xor)
ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
#define ECHOLO_X(NAME, TYPE)     \
  ECHOLO_REDUCE(NAME, TYPE, max) \
  ECHOLO_REDUCE(NAME, TYPE, min) ECHOLO_REDUCE(NAME, TYPE, sum) ECHOLO_REDUCE(NAME, TYPE, prod)
ECHOLO_SHMEM_ARITH_REDUCE_TYPES(ECHOLO_X)
#undef ECHOLO_X
}
