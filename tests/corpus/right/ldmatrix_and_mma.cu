// echolo-test: mode=sanitize n=1
// expect: correct
// ldmatrix, its transposed form, and mma.sync m16n8k16 against a plain product.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void product(const __half* a, const __half* b, float* c) {
  __shared__ __align__(16) __half sa[16][24], sb[16][8];
  const int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) sa[i / 16][i % 16] = a[i];
  for (int i = t; i < 128; i += 32) sb[i / 8][i % 8] = b[i];
  __syncwarp();
  unsigned fa[4], fb[2];
  float d[4] = {};
  const auto pa = static_cast<unsigned>(__cvta_generic_to_shared(&sa[t % 16][t / 16 * 8]));
  const auto pb = static_cast<unsigned>(__cvta_generic_to_shared(&sb[t % 16][0]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
               : "r"(pa)
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(fb[0]), "=r"(fb[1])
               : "r"(pb)
               : "memory");
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) c[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i];
}

int main() {
  __half a[256], b[128];
  float c[128];
  for (int i = 0; i < 256; ++i) a[i] = __float2half(static_cast<float>(i * 7 % 11 - 5));
  for (int i = 0; i < 128; ++i) b[i] = __float2half(static_cast<float>(i * 5 % 13 - 6) / 4);
  char* p = nullptr;
  cudaMalloc(&p, sizeof(a) + sizeof(b) + sizeof(c));
  cudaMemcpy(p, a, sizeof(a), cudaMemcpyHostToDevice);
  cudaMemcpy(p + sizeof(a), b, sizeof(b), cudaMemcpyHostToDevice);
  float* pc = reinterpret_cast<float*>(p + sizeof(a) + sizeof(b));
  product<<<1, 32>>>(reinterpret_cast<__half*>(p), reinterpret_cast<__half*>(p + sizeof(a)), pc);
  int wrong = cudaMemcpy(c, pc, sizeof(c), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += __half2float(a[i * 16 + k]) * __half2float(b[k * 8 + j]);
      wrong += c[i * 8 + j] != sum;  // small integers over 4: exact
    }
  }
  cudaFree(p);
  return wrong != 0;
}
