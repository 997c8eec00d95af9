// What GPU.md's tables of two H200s were measured with, each as one kernel: `put BYTES` (nbi puts by blocks),
// `store BYTES` (plain stores to the peer), `signal`, `barrier`.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdlib>
#include <cstring>

__global__ void put(char* to, const char* from, size_t bytes, int peer) {
  const size_t piece = bytes / gridDim.x;
  nvshmemx_putmem_nbi_block(to + blockIdx.x * piece, from + blockIdx.x * piece, piece, peer);
  nvshmem_quiet();
}

__global__ void store(int4* to, const int4* from, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

__global__ void signal(uint64_t* word, int pe) {
  if (pe == 0) nvshmemx_signal_op(word, 1, NVSHMEM_SIGNAL_SET, 1);
  if (pe == 1) nvshmem_signal_wait_until(word, NVSHMEM_CMP_EQ, 1);
}

__global__ void barrier() { nvshmemx_barrier_all_block(); }

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "barrier";
  const size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 65536;
  nvshmem_init();
  const int pe = nvshmem_my_pe();
  char* to = static_cast<char*>(nvshmem_calloc(bytes, 1));
  char* from = static_cast<char*>(nvshmem_calloc(bytes, 1));
  uint64_t* word = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  if (std::strcmp(what, "put") == 0 && pe == 0) put<<<64, 256>>>(to, from, bytes, 1);
  if (std::strcmp(what, "store") == 0 && pe == 0) {
    store<<<128, 512>>>(static_cast<int4*>(nvshmem_ptr(to, 1)), reinterpret_cast<int4*>(from), bytes / 16);
  }
  if (std::strcmp(what, "signal") == 0) signal<<<1, 1>>>(word, pe);
  if (std::strcmp(what, "barrier") == 0) barrier<<<1, 128>>>();
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(word);
  nvshmem_free(from);
  nvshmem_free(to);
  nvshmem_finalize();
  return 0;
}
