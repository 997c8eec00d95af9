"""The peers of bench/virtual_node on one tiled f32 GEMM (16x16 tiles in shared memory, one output a thread):
PoCL (native code, no checks: the limit) and Numba's CUDA simulator. Prints one JSON object with GFLOP/s of each, or the
reason why one could not run. Needs pyopencl and numba in the interpreter that runs it, PoCL from Debian."""

import json
import os
import sys
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numpy as np  # noqa: E402

TILE = 16
OPENCL = """
#define T 16
__kernel __attribute__((reqd_work_group_size(T, T, 1)))
void gemm(__global const float* a, __global const float* b, __global float* c, int n) {
  __local float sa[T][T];
  __local float sb[T][T];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int x = get_group_id(0) * T + tx, y = get_group_id(1) * T + ty;
  float sum = 0.0f;
  for (int t = 0; t < n / T; ++t) {
    sa[ty][tx] = a[y * n + t * T + tx];
    sb[ty][tx] = b[(t * T + ty) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < T; ++k) sum = fma(sa[ty][k], sb[k][tx], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}
"""


def matrices(n):
    rng = np.random.default_rng(1)
    return rng.random((n, n), np.float32), rng.random((n, n), np.float32), np.zeros((n, n), np.float32)


def check(a, b, c):
    if not np.allclose(c, a @ b, rtol=1e-4):
        raise RuntimeError("the peer's GEMM is wrong")


def pocl(n):
    import pyopencl as cl

    platforms = [p for p in cl.get_platforms() if "Portable Computing Language" in p.name]
    if not platforms:
        raise RuntimeError("PoCL's OpenCL driver is not there")
    device = platforms[0].get_devices()[0]
    # One core, as the virtual node's number is per core.
    device = device.create_sub_devices([cl.device_partition_property.EQUALLY, 1])[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    a, b, c = matrices(n)
    flags = cl.mem_flags
    buffers = [cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=m) for m in (a, b, c)]
    kernel = cl.Program(context, OPENCL).build().gemm
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        kernel(queue, (n, n), (TILE, TILE), *buffers, np.int32(n))
        queue.finish()
        best = min(best, time.perf_counter() - start)
    cl.enqueue_copy(queue, c, buffers[2]).wait()
    check(a, b, c)
    return 2.0 * n**3 / best / 1e9


def numba_simulator(n):
    global cuda  # the simulator finds the module through the kernel's globals
    from numba import cuda, float32

    @cuda.jit
    def gemm(a, b, c, size):
        # The simulator tells shared arrays apart by their line.
        sa = cuda.shared.array((TILE, TILE), float32)
        sb = cuda.shared.array((TILE, TILE), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x = cuda.blockIdx.x * TILE + tx
        y = cuda.blockIdx.y * TILE + ty
        total = float32(0)
        for t in range(size // TILE):
            sa[ty, tx] = a[y, t * TILE + tx]
            sb[ty, tx] = b[t * TILE + ty, x]
            cuda.syncthreads()
            for k in range(TILE):
                total += sa[ty, k] * sb[k, tx]
            cuda.syncthreads()
        c[y, x] = total

    a, b, c = matrices(n)
    start = time.perf_counter()
    gemm[(n // TILE, n // TILE), (TILE, TILE)](a, b, c, n)
    seconds = time.perf_counter() - start
    check(a, b, c)
    return 2.0 * n**3 / seconds / 1e9


def main():
    out = {}
    for name, run, n in (("pocl", pocl, 512), ("numba_simulator", numba_simulator, 32)):
        try:
            out[name] = {"n": n, "gflops": run(n)}
        except Exception as error:  # reported in the table, in the peer's place
            out[name] = {"n": n, "error": str(error).splitlines()[0] if str(error) else type(error).__name__}
    json.dump(out, sys.stdout)
    print()


if __name__ == "__main__":
    main()
