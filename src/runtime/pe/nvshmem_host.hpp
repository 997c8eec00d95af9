// What the files of the NVSHMEM host library share.
#pragma once

#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/pe/client.hpp"

namespace echolo::runtime::pe {

// Sends the call by its API name; where `stream` is not null it takes its place in that stream instead.
std::uint64_t host_call(const char* name, const std::uint64_t* arguments, std::uint32_t n,
                        const cudaStream_t* stream);

// Pointers and sizes as they are, ints sign-extended.
template <typename T>
std::uint64_t widen(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

// An element's value travels as its bits.
struct Bits {
  std::uint64_t value = 0;
};
inline std::uint64_t widen(Bits bits) { return bits.value; }
template <typename T>
Bits bits(const T& value) {
  Bits out;
  std::memcpy(&out.value, &value, sizeof value);
  return out;
}
template <typename T>
T value_of(std::uint64_t from) {
  T out;
  std::memcpy(static_cast<void*>(&out), &from, sizeof out);
  return out;
}

template <typename... Args>
std::uint64_t forward(const char* name, Args... args) {
  const std::uint64_t words[sizeof...(Args) + 1] = {widen(args)..., 0};
  return host_call(name, words, sizeof...(Args), nullptr);
}
template <typename... Args>
std::uint64_t forward_on(cudaStream_t stream, const char* name, Args... args) {
  const std::uint64_t words[sizeof...(Args) + 1] = {widen(args)..., 0};
  return host_call(name, words, sizeof...(Args), &stream);
}

}  // namespace echolo::runtime::pe
