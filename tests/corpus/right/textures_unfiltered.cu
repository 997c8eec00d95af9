// echolo-test: mode=sanitize n=1
// expect: correct
// Fetches through texture objects over linear and pitched memory, without filtering.
#include <cuda_runtime.h>

__global__ void fetch(cudaTextureObject_t line, cudaTextureObject_t image, float* out, int* numbers) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex1Dfetch<float>(line, 31 - i) + tex1Dfetch<float>(line, 1000);
  const uchar4 pixel = tex2D<uchar4>(image, static_cast<float>(i % 8) + 0.5f, static_cast<float>(i / 8) - 1.5f);
  numbers[i] = pixel.x + 256 * pixel.w;
}

int main() {
  float line[32], out[32], *line_memory, *out_memory;
  int numbers[32], *numbers_memory;
  uchar4 image[4][8], *image_memory;
  std::size_t pitch = 0;
  for (int i = 0; i < 32; ++i) {
    line[i] = 0.5f * static_cast<float>(i);
    image[i / 8][i % 8] = make_uchar4(static_cast<unsigned char>(i), 1, 2, static_cast<unsigned char>(200 + i));
  }
  cudaMalloc(&line_memory, sizeof line);
  cudaMalloc(&out_memory, sizeof out);
  cudaMalloc(&numbers_memory, sizeof numbers);
  cudaMallocPitch(&image_memory, &pitch, 8 * sizeof(uchar4), 4);
  cudaMemcpy(line_memory, line, sizeof line, cudaMemcpyHostToDevice);
  cudaMemcpy2D(image_memory, pitch, image, sizeof image[0], sizeof image[0], 4, cudaMemcpyHostToDevice);
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModePoint;
  how.readMode = cudaReadModeElementType;
  cudaResourceDesc linear = {}, pitched = {};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = line_memory;
  linear.res.linear.desc = cudaCreateChannelDesc<float>();
  linear.res.linear.sizeInBytes = sizeof line;
  pitched.resType = cudaResourceTypePitch2D;
  pitched.res.pitch2D.devPtr = image_memory;
  pitched.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
  pitched.res.pitch2D.width = 8;
  pitched.res.pitch2D.height = 4;
  pitched.res.pitch2D.pitchInBytes = pitch;
  cudaTextureObject_t a, b;
  if (cudaCreateTextureObject(&a, &linear, &how, nullptr) != cudaSuccess) return 2;
  if (cudaCreateTextureObject(&b, &pitched, &how, nullptr) != cudaSuccess) return 3;
  fetch<<<1, 32>>>(a, b, out_memory, numbers_memory);
  cudaMemcpy(out, out_memory, sizeof out, cudaMemcpyDeviceToHost);
  cudaMemcpy(numbers, numbers_memory, sizeof numbers, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) {
    const int row = i / 8 - 2 < 0 ? 0 : i / 8 - 2;  // floor(i / 8 - 1.5), clamped
    if (out[i] != line[31 - i]) return 4;
    if (numbers[i] != row * 8 + i % 8 + 256 * (200 + row * 8 + i % 8)) return 5;
  }
  cudaDestroyTextureObject(a);
  cudaDestroyTextureObject(b);
  cudaFree(line_memory);
  cudaFree(out_memory);
  cudaFree(numbers_memory);
  cudaFree(image_memory);
  return 0;
}
