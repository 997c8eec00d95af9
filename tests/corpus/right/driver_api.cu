// echolo-test: mode=sanitize n=2
// expect: correct
// A program of the driver API alone: context, module from PTX text, functions, memory, streams, events, words
// that streams wait for, functions by name.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <vector>

static const char* const kModule = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 p, .param .u32 n)
{
  .reg .pred %ok;
  .reg .b32 %r<8>;
  .reg .b64 %a<6>;
  ld.param.u64 %a0, [p];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %ok, %r4, %r0;
  @%ok bra done;
  cvta.to.global.u64 %a1, %a0;
  mul.wide.u32 %a2, %r4, 4;
  add.u64 %a3, %a1, %a2;
  ld.global.u32 %r5, [%a3];
  ld.global.u32 %r6, [factor];
  mul.lo.u32 %r7, %r5, %r6;
  st.global.u32 [%a3], %r7;
done:
  ret;
}
)";

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      return 1;                                           \
    }                                                     \
  } while (0)
#define OK(call)                                                   \
  do {                                                             \
    const CUresult error_ = (call);                                \
    const char* name_ = "?";                                       \
    if (error_ != CUDA_SUCCESS) {                                  \
      cuGetErrorName(error_, &name_);                              \
      std::printf("line %d: %s: %s\n", __LINE__, #call, name_);    \
      return 1;                                                    \
    }                                                              \
  } while (0)

static int modules(CUdevice device) {
  CUmodule module;
  CUfunction scale;
  OK(cuModuleLoadDataEx(&module, kModule, 0, nullptr, nullptr));
  OK(cuModuleGetFunction(&scale, module, "scale"));
  CHECK(cuModuleGetFunction(&scale, module, "missing") == CUDA_ERROR_NOT_FOUND);
  OK(cuModuleGetFunction(&scale, module, "scale"));
  int threads = 0, blocks = 0, grid = 0, best = 0;
  OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale));
  CHECK(threads == 1024);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0));
  CHECK(blocks == 8);
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &best, scale, nullptr, 0, 0));
  CHECK(best == 1024 && grid > 0);
  OK(cuFuncSetAttribute(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
  std::size_t offset = 0, size = 0;
  OK(cuFuncGetParamInfo(scale, 1, &offset, &size));
  CHECK(offset == 8 && size == 4);

  CUdeviceptr factor, p;
  OK(cuModuleGetGlobal(&factor, &size, module, "factor"));
  CHECK(size == 4);
  std::vector<unsigned> h(1000), back(1000);
  for (unsigned i = 0; i < 1000; ++i) h[i] = i;
  OK(cuMemAlloc(&p, 4000));
  OK(cuMemcpyHtoD(p, h.data(), 4000));
  unsigned n = 1000;
  void* args[] = {&p, &n};
  OK(cuLaunchKernel(scale, 4, 1, 1, 256, 1, 1, 0, nullptr, args, nullptr));
  OK(cuMemsetD32(factor, 5, 1));
  struct {
    CUdeviceptr p;
    unsigned n;
  } packed = {p, n};
  std::size_t bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CUlaunchConfig config = {};
  config.gridDimX = 4;
  config.blockDimX = 256;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  OK(cuLaunchKernelEx(&config, scale, nullptr, extra));
  OK(cuMemcpyDtoH(back.data(), p, 4000));
  for (unsigned i = 0; i < 1000; ++i) CHECK(back[i] == 15 * i);

  // The same text as a library: its kernel is a function, with a variable of its own.
  CUlibrary library;
  CUkernel kernel;
  CUfunction from_library;
  unsigned count = 0;
  OK(cuLibraryLoadData(&library, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernelCount(&count, library));
  CHECK(count == 1);
  OK(cuLibraryGetKernel(&kernel, library, "scale"));
  OK(cuKernelGetFunction(&from_library, kernel));
  OK(cuLaunchKernel(from_library, 4, 1, 1, 256, 1, 1, 0, nullptr, args, nullptr));
  OK(cuMemcpyDtoH(back.data(), p, 4000));
  CHECK(back[7] == 45 * 7);
  OK(cuLibraryUnload(library));
  OK(cuModuleUnload(module));
  CHECK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuMemFree(p));
  CHECK(cuModuleLoadData(&module, "no module at all") == CUDA_ERROR_INVALID_IMAGE);
  int major = 0;
  OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CHECK(major == 9);
  return 0;
}

static int memory() {
  CUdeviceptr a, b, base;
  std::size_t pitch = 0, size = 0;
  OK(cuMemAllocPitch(&a, &pitch, 100, 10, 4));
  OK(cuMemsetD2D16(a, pitch, 0x0102, 50, 10));
  unsigned char host[1000] = {};
  CUDA_MEMCPY2D c = {};
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = a;
  c.srcPitch = pitch;
  c.dstMemoryType = CU_MEMORYTYPE_HOST;
  c.dstHost = host;
  c.dstPitch = 100;
  c.WidthInBytes = 100;
  c.Height = 10;
  OK(cuMemcpy2D(&c));
  CHECK(host[0] == 2 && host[1] == 1 && host[999] == 1);
  OK(cuMemGetAddressRange(&base, &size, a + 17));
  CHECK(base == a && size == pitch * 10);
  OK(cuMemAllocAsync(&b, 64, nullptr));
  OK(cuMemcpyDtoDAsync(b, a, 64, nullptr));
  unsigned type = 0;
  CUdeviceptr start = 0;
  void* results[] = {&type, &start};
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  OK(cuPointerGetAttributes(2, wanted, results, b + 3));
  CHECK(type == CU_MEMORYTYPE_DEVICE && start == b);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host)) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(b, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemFree(a));
  return 0;
}

static int streams() {
  CUstream first, second;
  CUevent begin, end;
  CUdeviceptr flag, data;
  unsigned* pinned = nullptr;
  OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  OK(cuMemAlloc(&flag, 8));
  OK(cuMemAlloc(&data, 4));
  OK(cuMemAllocHost(reinterpret_cast<void**>(&pinned), 4));
  OK(cuMemsetD32(flag, 0, 2));
  OK(cuCtxSynchronize());
  // The second stream reads what the first has written before it raised the flag.
  OK(cuEventRecord(begin, second));
  OK(cuStreamWaitValue32(second, flag, 7, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuMemcpyDtoHAsync(pinned, data, 4, second));
  OK(cuEventRecord(end, second));
  OK(cuMemsetD32Async(data, 99, 1, first));
  OK(cuStreamWriteValue32(first, flag, 8, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cuEventSynchronize(end));
  CHECK(*pinned == 99);
  float ms = -1;
  OK(cuEventElapsedTime(&ms, begin, end));
  CHECK(ms >= 0);
  CHECK(cuStreamQuery(second) == CUDA_SUCCESS);
  OK(cuMemFreeHost(pinned));
  OK(cuStreamDestroy(second));
  OK(cuStreamDestroy(first));
  OK(cuEventDestroy(end));
  OK(cuEventDestroy(begin));
  OK(cuMemFree(data));
  OK(cuMemFree(flag));
  return 0;
}

static int names() {
  const char* text = nullptr;
  OK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
  CHECK(std::strcmp(text, "invalid value") == 0);
  OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
  using Alloc = CUresult (*)(CUdeviceptr*, std::size_t);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  OK(cuGetProcAddress("cuMemAlloc", &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CUdeviceptr p = 0;
  OK(reinterpret_cast<Alloc>(found)(&p, 256));
  OK(cuMemFree(p));
  OK(cuGetProcAddress("cuNoSuchThing", &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  CHECK(found == nullptr && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  // As programs do that must start where there is no driver.
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(library != nullptr && dlsym(library, "cuLaunchKernel") == reinterpret_cast<void*>(&cuLaunchKernel));
  return 0;
}

int main() {
  int n = 0;
  CHECK(cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED);
  OK(cuInit(0));
  OK(cuDeviceGetCount(&n));
  CHECK(n == 2);
  CUdevice device;
  OK(cuDeviceGet(&device, 0));
  char name[100];
  OK(cuDeviceGetName(name, sizeof name, device));
  CUdeviceptr p;
  CHECK(cuMemAlloc(&p, 16) == CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context, popped;
  OK(cuCtxCreate(&context, nullptr, 0, device));
  if (modules(device) != 0 || memory() != 0 || streams() != 0 || names() != 0) return 1;
  OK(cuCtxPopCurrent(&popped));
  CHECK(popped == context && cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxPushCurrent(context));
  OK(cuCtxDestroy(context));
  // The primary context after it.
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  OK(cuMemAlloc(&p, 16));
  OK(cuMemFree(p));
  OK(cuDevicePrimaryCtxRelease(device));
  return 0;
}
