// The PE side of the protocol: every API function makes one Call. The connection lives in
// libecholo_cudart.so; other libraries reach it through the three exported C functions below, so that a
// process has one client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/protocol.hpp"

extern "C" {
// Sends a request and waits for its reply. `*out` is allocated with malloc and owned by the caller.
int __cudaEcholoCall(std::uint16_t op, const char* name, const std::uint8_t* in, std::size_t n,
                     std::uint8_t** out, std::size_t* n_out);
void __cudaEcholoNote(std::uint16_t op, const std::uint8_t* in, std::size_t n);
const echolo::runtime::wire::Hello* __cudaEcholoHello();  // null: there is no node
}

namespace echolo::runtime::pe {

// Values of cudaError_t that this side makes itself (driver_types.h).
inline constexpr int kSuccess = 0, kInvalidValue = 1, kMemoryAllocation = 2, kInitializationError = 3,
                     kCudartUnloading = 4, kInvalidSymbol = 13, kInvalidDeviceFunction = 98,
                     kInvalidDevice = 101, kInvalidResourceHandle = 400, kNotReady = 600, kNotSupported = 801,
                     kUnknown = 999;

class Call {
 public:
  Call(wire::Op op, const char* name) : op_(op), name_(name) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  wire::Writer in;
  wire::Reader out;
  int send();  // a cudaError_t; on success `out` reads the reply

 private:
  wire::Op op_;
  const char* name_;
  std::uint8_t* reply_ = nullptr;
};

// Puts a sentence into the job's result: why this call can't be served. Returns cudaErrorNotSupported.
int unsupported(const char* name, std::string_view why);

// Is this an address of the device arena / of this node's pinned and managed memory?
bool in_arena(const void* p);
bool in_host_range(const void* p);

}  // namespace echolo::runtime::pe
