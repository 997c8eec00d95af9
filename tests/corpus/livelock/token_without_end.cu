// echolo-test: mode=sanitize n=1 timeout=240
// expect: livelock
// Two blocks pass a token to and fro until somebody sets `done`, which nobody does.
#include <cuda_runtime.h>

__global__ void play(volatile int* token, volatile int* done) {
  const int me = blockIdx.x;
  for (int round = 0; *done == 0; ++round) {
    while (*token != me) {
    }
    *token = 1 - me;
  }
}

int main() {
  int* words = nullptr;
  cudaMalloc(&words, 2 * sizeof(int));
  cudaMemset(words, 0, 2 * sizeof(int));
  play<<<2, 1>>>(words, words + 1);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(words);
  return failed;
}
