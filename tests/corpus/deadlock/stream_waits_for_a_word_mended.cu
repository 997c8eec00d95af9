// echolo-test: mode=sanitize n=1
// expect: correct
// A stream waits for the word that another stream writes.
#include <cuda.h>

int main() {
  CUdevice device;
  CUcontext context;
  CUdeviceptr flag;
  cuInit(0);
  cuDeviceGet(&device, 0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  cuMemAlloc(&flag, 4);
  cuMemsetD32(flag, 0, 1);
  CUstream waits, writes;
  cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING);
  cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING);
  cuCtxSynchronize();
  cuStreamWaitValue32(waits, flag, 1, CU_STREAM_WAIT_VALUE_GEQ);
  cuStreamWriteValue32(writes, flag, 1, CU_STREAM_WRITE_VALUE_DEFAULT);
  cuStreamSynchronize(waits);
  cuStreamDestroy(writes);
  cuStreamDestroy(waits);
  cuMemFree(flag);
  return 0;
}
