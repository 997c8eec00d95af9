// Kernels that lean on one thing each, for bench/virtual_node.cpp.
#include <cstdint>

// Every other instruction is a load or store of shared memory, with a barrier a round.
extern "C" __global__ void shared_heavy(float* out, int rounds) {
  __shared__ float tile[2][256];
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    float* const now = tile[i % 2];
    now[threadIdx.x] = value;
    __syncthreads();
#pragma unroll
    for (int j = 1; j <= 8; ++j) value += 0.125f * now[(threadIdx.x + 17 * j) % 256];
  }
  out[blockIdx.x * 256 + threadIdx.x] = value;
}

// A histogram: eight values a thread and round, each an atomic on one of 1,024 counters.
extern "C" __global__ void atomic_heavy(unsigned* bins, int rounds) {
  unsigned state = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      state = state * 1664525U + 1013904223U;
      atomicAdd(&bins[state >> 22], 1U);
    }
  }
}

// c[m][n] = a[m][k] b[k][n], bf16 in, f32 out; a block of 128 threads makes 64 x 64, through shared memory.
extern "C" __global__ void mma_gemm(const uint16_t* a, const uint16_t* b, float* c, int n, int k) {
  __shared__ __align__(16) uint16_t as[64][40];
  __shared__ __align__(16) uint16_t bs[32][72];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64, mine = warp / 2 * 32, col = warp % 2 * 32;
  float acc[2][4][4] = {};
  for (int k0 = 0; k0 < k; k0 += 32) {
    for (int i = threadIdx.x; i < 256; i += 128) {
      *reinterpret_cast<uint4*>(&as[i / 4][i % 4 * 8]) =
          *reinterpret_cast<const uint4*>(&a[static_cast<int64_t>(row0 + i / 4) * k + k0 + i % 4 * 8]);
      *reinterpret_cast<uint4*>(&bs[i / 8][i % 8 * 8]) =
          *reinterpret_cast<const uint4*>(&b[static_cast<int64_t>(k0 + i / 8) * n + col0 + i % 8 * 8]);
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 32; step += 16) {
      uint32_t fa[2][4], fb[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                     : "r"(static_cast<uint32_t>(
                         __cvta_generic_to_shared(&as[mine + i * 16 + lane % 16][step + lane / 16 * 8])))
                     : "memory");
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1])
                     : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(&bs[step + lane % 16][col + j * 8])))
                     : "memory");
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
              "{%0, %1, %2, %3};"
              : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
              : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      for (int half = 0; half < 2; ++half) {
        float2* const to = reinterpret_cast<float2*>(
            &c[static_cast<int64_t>(row0 + mine + i * 16 + half * 8 + lane / 4) * n + col0 + col + j * 8 + lane % 4 * 2]);
        *to = make_float2(acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
      }
    }
  }
}
