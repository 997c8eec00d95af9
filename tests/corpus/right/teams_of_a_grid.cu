// echolo-test: mode=sanitize n=6
// expect: correct
// Six PEs as two rows of three: sums along rows, broadcasts along columns, from hosts, streams and kernels; teams of
// every other PE; teams that are not made; ends of teams.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      std::printf("PE %d, line %d: %s\n", nvshmem_my_pe(), __LINE__, #condition);      \
      return 1;                                                                        \
    }                                                                                  \
  } while (0)

__global__ void number(int* p, int v) { *p = v; }

// Each block serves one team: block 0 the row, block 1 the column.
__global__ void sums(nvshmem_team_t row, nvshmem_team_t column, int* out, const int* in) {
  const nvshmem_team_t team = blockIdx.x == 0 ? row : column;
  nvshmemx_int_sum_reduce_block(team, out + blockIdx.x, in, 1);
}
__global__ void meet(nvshmem_team_t team, int* seen) {
  nvshmemx_team_sync_block(team);
  if (threadIdx.x == 0) *seen = nvshmem_team_my_pe(team) * 10 + nvshmem_team_n_pes(team);
}

static int value(const int* p) {
  int v = -1;
  cudaMemcpy(&v, p, sizeof v, cudaMemcpyDeviceToHost);
  return v;
}

int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe();
  CHECK(nvshmem_n_pes() == 6);
  nvshmem_team_t row, column;
  CHECK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 3, nullptr, 0, &row, nullptr, 0, &column) == 0);
  CHECK(nvshmem_team_n_pes(row) == 3 && nvshmem_team_my_pe(row) == me % 3);
  CHECK(nvshmem_team_n_pes(column) == 2 && nvshmem_team_my_pe(column) == me / 3);
  CHECK(nvshmem_team_translate_pe(row, 2, NVSHMEM_TEAM_WORLD) == me / 3 * 3 + 2);
  CHECK(nvshmem_team_translate_pe(column, 1, row) == (me >= 3 ? me % 3 : -1));
  nvshmem_team_config_t config;
  CHECK(nvshmem_team_get_config(row, &config) == 0);

  int* in = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  int* out = static_cast<int*>(nvshmem_malloc(2 * sizeof(int)));
  number<<<1, 1>>>(in, me);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  sums<<<2, 32>>>(row, column, out, in);
  cudaDeviceSynchronize();
  CHECK(value(out) == (me < 3 ? 0 + 1 + 2 : 3 + 4 + 5));
  CHECK(value(out + 1) == 2 * (me % 3) + 3);

  cudaStream_t stream;
  cudaStreamCreate(&stream);
  nvshmemx_int_broadcast_on_stream(column, out, in, 1, 1, stream);
  nvshmemx_int_max_reduce_on_stream(row, out + 1, in, 1, stream);
  nvshmemx_team_sync_on_stream(row, stream);
  cudaStreamSynchronize(stream);
  CHECK(value(out) == 3 + me % 3 && value(out + 1) == (me < 3 ? 2 : 5));
  CHECK(nvshmem_int_min_reduce(row, out, in, 1) == 0);
  CHECK(value(out) == me / 3 * 3);
  CHECK(nvshmem_team_sync(column) == 0);

  // PEs 1, 3 and 5; the others are in no new team.
  nvshmem_team_t odd;
  CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 2, 3, nullptr, 0, &odd) == 0);
  CHECK((odd != NVSHMEM_TEAM_INVALID) == (me % 2 == 1));
  if (me % 2 == 1) {
    meet<<<1, 64>>>(odd, out);
    cudaDeviceSynchronize();
    CHECK(value(out) == me / 2 * 10 + 3);
    // Of these three the first two, in reverse.
    nvshmem_team_t pair;
    CHECK(nvshmem_team_split_strided(odd, 1, -1, 2, nullptr, 0, &pair) == 0);
    CHECK(me == 5 ? pair == NVSHMEM_TEAM_INVALID : nvshmem_team_my_pe(pair) == (me == 3 ? 0 : 1));
    if (pair != NVSHMEM_TEAM_INVALID) nvshmem_team_destroy(pair);
    nvshmem_team_destroy(odd);
  }
  // More than there are: refused for all.
  nvshmem_team_t none;
  CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 7, nullptr, 0, &none) != 0);
  CHECK(none == NVSHMEM_TEAM_INVALID);
  // A range wider than the team is the team.
  nvshmem_team_t all, single;
  CHECK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 100, nullptr, 0, &all, nullptr, 0, &single) == 0);
  CHECK(nvshmem_team_n_pes(all) == 6 && nvshmem_team_n_pes(single) == 1);
  nvshmem_team_destroy(single);
  nvshmem_team_destroy(all);
  nvshmem_team_destroy(column);
  nvshmem_team_destroy(row);
  cudaStreamDestroy(stream);
  nvshmem_free(out);
  nvshmem_free(in);
  nvshmem_finalize();
  return 0;
}
