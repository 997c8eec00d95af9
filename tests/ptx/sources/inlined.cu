// Inlined functions, for the chain of positions; line numbers matter to test_compiled.cpp.
__device__ inline float innermost(float x) {
  return x * 3.0f + 1.0f;
}
template <typename T>
__device__ inline T middle(T x) {
  return innermost(x) / x;
}
__device__ inline void outer(float* p) {
  p[0] = middle(p[1]);
}
__global__ void inlined(float* p) {
  outer(p + threadIdx.x);
}
