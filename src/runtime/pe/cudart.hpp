// What the files of the CUDA runtime library share.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/pe/client.hpp"

namespace echolo::runtime::pe {

// Remembers a failure for cudaGetLastError and passes it on. Every API function returns through here.
cudaError_t done(int error);

inline std::uint64_t number(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
template <typename T>
T pointer(std::uint64_t value) {
  return reinterpret_cast<T>(value);
}

struct Kernel {
  std::uint32_t module = 0;  // as the node numbers it; 0 until it is loaded
  std::string name;          // mangled
  int fatbin = -1;
  bool known = false;                         // the fields below are filled
  std::vector<std::uint32_t> offsets, sizes;  // of the parameters, in the parameter block
  std::uint32_t parameter_bytes = 0, static_shared = 0, local_bytes = 0, registers = 0, const_bytes = 0,
                max_threads = 0;
  std::uint64_t dynamic_limit = 0;  // 0: never set
};

// Loads every registered module on the node, once. All API functions that need the device call it first.
int ready();
// Sends a request of these words, after ready().
template <typename... Args>
int simple(wire::Op op, const char* name, Args... args) {
  if (const int error = ready(); error != kSuccess) return error;
  Call call(op, name);
  (call.in.u64(args), ...);
  return call.send();
}

// ---- modules and kernels ----
// Loads a PTX text, or the PTX of a fat binary, on the node.
int load_ptx(const std::string& name, const std::string& ptx, std::uint32_t* module);
int load_container(const std::uint8_t* data, std::uint32_t* module);
// Asks the node for what is known of a kernel whose module is loaded.
int look_up(Kernel& kernel);
// A kernel that no host function stands for (driver API); find_kernel knows it by its address until it is
// disowned.
void adopt(Kernel* kernel);
void disown(Kernel* kernel);
// The host function (or, for kernels of the driver API, the handle) of a kernel that the node knows as this;
// null: there is none.
void* function_of(std::uint32_t module, const std::string& name);
// The kernel that a host function stands for; null where there is none (`*error` says why).
Kernel* find_kernel(const void* function, int* error);
// Address and size of a __device__ or __constant__ variable by its host shadow.
int find_symbol(const void* symbol, std::uint64_t* address, std::uint64_t* size);

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
  dim3 cluster = dim3(0, 0, 0);
};
// The parameter block from pointers to the arguments; an error where one is missing.
int pack_arguments(const Kernel& kernel, void** args, std::vector<std::uint8_t>* block);
void write_launch(wire::Writer& out, const Kernel& kernel, const LaunchShape& shape,
                  const std::vector<std::uint8_t>& block);
int launch(const char* name, const Kernel& kernel, const LaunchShape& shape, void** args);
// Reads launch attributes into a shape; an error for one that is not modelled.
int read_attributes(const char* name, const cudaLaunchAttribute* attributes, unsigned n, LaunchShape* shape);
int occupancy(const char* name, const Kernel& kernel, int threads, std::size_t shared, int* blocks);
int available_shared(const Kernel& kernel, int blocks, std::size_t* bytes);
int active_clusters(const char* name, const Kernel& kernel, const LaunchShape& shape, int* clusters);
int set_function_attribute(const char* name, Kernel& kernel, int attribute, int value);
int device_attribute(const char* name, int attribute, int device, int* value);

// ---- memory, streams, events; `name` is the API function's, as findings tell it ----
// `pool`: of kAsync. The memory is usable as soon as the call returns, which is earlier than stream order
// demands.
int allocate(const char* name, wire::AllocationClass kind, void** out, std::size_t bytes,
             std::uint64_t pool = 0);
std::uint64_t current_pool();
int release(const char* name, wire::AllocationClass kind, void* p);
int release_async(const char* name, void* p, cudaStream_t stream);
int memory_info(const char* name, std::size_t* free, std::size_t* total);
struct PointerInfo {
  wire::AllocationClass kind = wire::AllocationClass::kPageable;
  std::uint64_t base = 0, size = 0;
};
int pointer_info(const char* name, const void* p, PointerInfo* info);
int make_stream(const char* name, cudaStream_t* stream, unsigned flags, int priority);
int stream_info(const char* name, cudaStream_t stream, unsigned* flags, int* priority,
                unsigned long long* id);
int make_event(const char* name, cudaEvent_t* event, unsigned flags);
int event_time(const char* name, float* ms, cudaEvent_t start, cudaEvent_t end);
int host_function(const char* name, cudaStream_t stream, std::uint64_t function, void* data, bool callback);
int device_count();

enum class Wait : std::uint8_t { kAsync = 0, kSync = 1 };
struct CopyShape {
  std::uint64_t width = 0, height = 1, to_pitch = 0, from_pitch = 0;
};
int copy(const char* name, void* to, const void* from, const CopyShape& shape, cudaMemcpyKind kind,
         cudaStream_t stream, Wait wait);
// The requests of a copy, a fill and a host function as nodes of a graph send them: without the bytes of
// pageable memory, which are read when the graph runs.
int write_copy(const char* name, wire::Writer& out, void* to, const void* from, const CopyShape& shape,
               cudaMemcpyKind kind);
struct FillShape;
int write_fill(wire::Writer& out, void* p, const FillShape& shape);
void write_host_function(wire::Writer& out, cudaStream_t stream, std::uint64_t function, void* data,
                         bool callback);
// Rows of `width` elements of `element` (1, 2 or 4) bytes, `pitch` bytes apart.
struct FillShape {
  std::uint64_t pitch = 0, width = 0, height = 1;
  std::uint32_t value = 0;
  std::uint8_t element = 1;
};
int fill(const char* name, void* p, const FillShape& shape, cudaStream_t stream, Wait wait);

}  // namespace echolo::runtime::pe

#define ECHOLO_API extern "C" __attribute__((visibility("default")))
