// The type lists of the NVSHMEM API (NVSHMEM documentation, tables "Standard RMA Types and Names", "Standard
// AMO Types", "Point-to-Point Comparison Types", "Reduction Types"). X(NAME, TYPE) is expanded once a type.
// Both the header for candidates and the host library that implements it expand these.
#ifndef ECHOLO_NVSHMEM_TYPES_LIST_H
#define ECHOLO_NVSHMEM_TYPES_LIST_H

#define ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(X) \
  X(uchar, unsigned char)                    \
  X(ushort, unsigned short)                  \
  X(uint, unsigned int)                      \
  X(ulong, unsigned long)                    \
  X(ulonglong, unsigned long long)           \
  X(int8, int8_t)                            \
  X(int16, int16_t)                          \
  X(int32, int32_t)                          \
  X(int64, int64_t)                          \
  X(uint8, uint8_t)                          \
  X(uint16, uint16_t)                        \
  X(uint32, uint32_t)                        \
  X(uint64, uint64_t)                        \
  X(size, size_t)

#define ECHOLO_SHMEM_ARITH_REDUCE_TYPES(X) \
  ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(X)     \
  X(char, char)                            \
  X(schar, signed char)                    \
  X(short, short)                          \
  X(int, int)                              \
  X(long, long)                            \
  X(longlong, long long)                   \
  X(bfloat16, __nv_bfloat16)               \
  X(half, __half)                          \
  X(float, float)                          \
  X(double, double)

#define ECHOLO_SHMEM_RMA_TYPES(X)    \
  ECHOLO_SHMEM_ARITH_REDUCE_TYPES(X) \
  X(ptrdiff, ptrdiff_t)

#define ECHOLO_SHMEM_WAIT_TYPES(X) \
  X(short, short)                  \
  X(int, int)                      \
  X(long, long)                    \
  X(longlong, long long)           \
  X(ushort, unsigned short)        \
  X(uint, unsigned int)            \
  X(ulong, unsigned long)          \
  X(ulonglong, unsigned long long) \
  X(int32, int32_t)                \
  X(int64, int64_t)                \
  X(uint32, uint32_t)              \
  X(uint64, uint64_t)              \
  X(size, size_t)                  \
  X(ptrdiff, ptrdiff_t)

#define ECHOLO_SHMEM_BITWISE_AMO_TYPES(X) \
  X(uint, unsigned int)                   \
  X(ulong, unsigned long)                 \
  X(ulonglong, unsigned long long)        \
  X(int32, int32_t)                       \
  X(uint32, uint32_t)                     \
  X(int64, int64_t)                       \
  X(uint64, uint64_t)

#define ECHOLO_SHMEM_STANDARD_AMO_TYPES(X) \
  ECHOLO_SHMEM_BITWISE_AMO_TYPES(X)        \
  X(int, int)                              \
  X(long, long)                            \
  X(longlong, long long)                   \
  X(size, size_t)                          \
  X(ptrdiff, ptrdiff_t)

// fetch, set and swap only; add and fetch_add under the nvshmemx_ prefix.
#define ECHOLO_SHMEM_EXTENDED_AMO_TYPES(X) \
  X(half, __half)                          \
  X(float, float)                          \
  X(double, double)

#define ECHOLO_SHMEM_SIZES(X) X(8) X(16) X(32) X(64) X(128)

#endif
