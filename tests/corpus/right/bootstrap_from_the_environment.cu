// echolo-test: mode=sanitize n=3
// expect: correct
// Rank and size from the environment, as nvshmrun and other launchers give them; then a start by unique id, a buffer
// that is registered, a grid as large as a collective launch allows, a device module of its own.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      return 1;                                           \
    }                                                     \
  } while (0)

static const char* const kModule = R"(
.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe ();
.visible .entry who(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %a<2>;
  ld.param.u64 %a0, [out];
  { .param .b32 r0; call.uni (r0), nvshmem_my_pe, (); ld.param.b32 %r0, [r0]; }
  st.global.u32 [%a0], %r0;
  ret;
}
)";

// Every block waits for every other one, on every PE: only a grid that is resident at once gets through.
__global__ void all_meet(unsigned* count, unsigned* seen) {
  if (threadIdx.x == 0) {
    atomicAdd(count, 1u);
    while (atomicAdd(count, 0u) < gridDim.x) {
    }
  }
  __syncthreads();
  if (blockIdx.x == 0) {
    nvshmemx_barrier_all_block();
    if (threadIdx.x == 0) *seen = gridDim.x;
  }
}

static int number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

int main() {
  const int rank = number("PMI_RANK"), size = number("PMI_SIZE");
  CHECK(size == 3 && rank >= 0 && rank < 3 && number("LOCAL_RANK") == rank && number("WORLD_SIZE") == 3);
  CHECK(cudaSetDevice(rank) == cudaSuccess);
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  CHECK(nvshmemx_get_uniqueid(&id) == 0);
  CHECK(nvshmemx_set_attr_uniqueid_args(rank, size, &id, &attr) == 0);
  CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
  CHECK(nvshmem_my_pe() == rank && nvshmem_n_pes() == size);
  CHECK(std::strcmp(nvshmemx_status_string(NVSHMEMX_ERROR_SYMMETRY), "NVSHMEMX_ERROR_SYMMETRY") == 0);

  // A put from private device memory.
  int *mine = nullptr, *theirs = static_cast<int*>(nvshmem_calloc(4, sizeof(int)));
  cudaMalloc(&mine, 4 * sizeof(int));
  CHECK(nvshmemx_buffer_register(mine, 4 * sizeof(int)) == 0);
  CHECK(nvshmemx_buffer_register(mine + 1, sizeof(int)) != 0);  // overlaps
  const int values[4] = {rank, rank + 1, rank + 2, rank + 3};
  cudaMemcpy(mine, values, sizeof values, cudaMemcpyHostToDevice);
  nvshmem_int_put(theirs, mine, 4, (rank + 1) % size);
  nvshmem_barrier_all();
  int back[4];
  cudaMemcpy(back, theirs, sizeof back, cudaMemcpyDeviceToHost);
  CHECK(back[3] == (rank + size - 1) % size + 3);
  CHECK(nvshmemx_buffer_unregister(mine) == 0 && nvshmemx_buffer_unregister(mine) != 0);
  nvshmemx_buffer_unregister_all();

  unsigned* count = nullptr;
  cudaMalloc(&count, 2 * sizeof(unsigned));
  cudaMemset(count, 0, 2 * sizeof(unsigned));
  unsigned* seen = count + 1;
  void* args[] = {&count, &seen};
  int grid = 0;
  const std::size_t shared = 100 << 10;  // two blocks an SM
  CHECK(cudaFuncSetAttribute(all_meet, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)) ==
        cudaSuccess);
  CHECK(nvshmemx_collective_launch_query_gridsize(reinterpret_cast<const void*>(all_meet), dim3(32), args, shared,
                                                  &grid) == 0);
  CHECK(grid == 264);
  CHECK(nvshmemx_collective_launch(reinterpret_cast<const void*>(all_meet), dim3(static_cast<unsigned>(grid)), dim3(32),
                                   args, shared, nullptr) == 0);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  unsigned n = 0;
  cudaMemcpy(&n, seen, sizeof n, cudaMemcpyDeviceToHost);
  CHECK(n == 264);
  CHECK(nvshmemx_collective_launch(reinterpret_cast<const void*>(all_meet), dim3(265), dim3(32), args, shared,
                                   nullptr) == static_cast<int>(cudaErrorCooperativeLaunchTooLarge));
  cudaGetLastError();

  CUmodule module;
  CUfunction who;
  CHECK(cuModuleLoadData(&module, kModule) == CUDA_SUCCESS);
  CHECK(nvshmemx_cumodule_init(module) == 0);
  CHECK(cuModuleGetFunction(&who, module, "who") == CUDA_SUCCESS);
  void* who_args[] = {&mine};
  CHECK(cuLaunchKernel(who, 1, 1, 1, 1, 1, 1, 0, nullptr, who_args, nullptr) == CUDA_SUCCESS);
  cudaMemcpy(back, mine, sizeof(int), cudaMemcpyDeviceToHost);
  CHECK(back[0] == rank);
  CHECK(nvshmemx_cumodule_finalize(module) == 0 && cuModuleUnload(module) == CUDA_SUCCESS);

  cudaFree(count);
  cudaFree(mine);
  nvshmem_free(theirs);
  nvshmem_finalize();
  return 0;
}
