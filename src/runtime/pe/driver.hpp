// What the files of the driver API (libcuda) share. Its functions live in the runtime's library, which is
// also found under the driver's name: a process has one client, one set of modules, one context.
#pragma once

#include <cuda.h>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

// A CUresult from an error of this library or the node; most numbers agree.
CUresult result(int error);
// CUDA_SUCCESS where cuInit has been called and a context is current, as almost every call demands.
CUresult entered();
CUresult initialised();
// The runtime API was used by this thread: the driver is initialised, and the primary context is current
// where none was.
void runtime_entered();

inline CUdeviceptr device_pointer(const void* p) { return number(p); }
inline void* host_pointer(CUdeviceptr p) { return pointer<void*>(p); }

// For calls that only need a current context and then do something that gives an error number.
template <typename Body>
CUresult in_context(Body&& body) {
  const CUresult state = entered();
  return state != CUDA_SUCCESS ? state : result(body());
}

// Null where it is no live function or kernel of this process.
Kernel* kernel_of(const void* handle);

}  // namespace echolo::runtime::pe
