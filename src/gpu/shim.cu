// Linked into every candidate's shared object on a GPU machine: NVSHMEM's state lives in the object that its
// device library is linked into, so starting and ending it must be called from here (NVSHMEM API reference,
// "Library Setup, Exit, and Query", nvshmemx_init_attr with a unique id).
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// Keeps the stream busy for a time below `limit_ns` that is drawn anew in each replay of a captured graph.
__global__ void wait_at_random(std::uint64_t seed, std::uint64_t limit_ns) {
  const std::uint64_t start = now_ns();
  std::uint64_t x = (start / 32) ^ (seed * 0x9e3779b97f4a7c15ULL);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  const std::uint64_t wait = (x ^ (x >> 31)) % limit_ns;
  while (now_ns() - start < wait) {
  }
}

__global__ void nothing() {}

}  // namespace

extern "C" {

// Bytes of a unique id.
int echolo_shim_id_bytes() { return static_cast<int>(sizeof(nvshmemx_uniqueid_t)); }

// PE 0 makes the id that all PEs then start with. 0: good.
int echolo_shim_make_id(void* out) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  const int status = nvshmemx_get_uniqueid(&id);
  std::memcpy(out, &id, sizeof id);
  return status;
}

int echolo_shim_start(const void* id_bytes, int pe, int n_pes) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  std::memcpy(&id, id_bytes, sizeof id);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  int status = nvshmemx_set_attr_uniqueid_args(pe, n_pes, &id, &attributes);
  if (status == 0) status = nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
  return status;
}

void echolo_shim_end() { nvshmem_finalize(); }

void echolo_shim_delay(cudaStream_t stream, std::uint64_t seed, std::uint64_t limit_ns) {
  if (limit_ns > 0) wait_at_random<<<1, 1, 0, stream>>>(seed, limit_ns);
}

// What a launch costs when it does nothing.
void echolo_shim_nothing(cudaStream_t stream) { nothing<<<1, 32, 0, stream>>>(); }

}  // extern "C"
