// memcpy and memset. Bytes of pageable host memory travel with the request (to the device: taken when the
// call is made) or with the reply (from the device: the call waits, as CUDA's does for pageable memory).
#include <algorithm>
#include <cstring>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {
namespace {

enum class Where : std::uint8_t { kDevice, kPinned, kPageable };

Where where(const void* p) {
  if (in_arena(p)) return Where::kDevice;
  return in_host_range(p) ? Where::kPinned : Where::kPageable;
}

// Does `kind` agree with where the addresses lie? Pinned and managed memory counts as either side.
bool agrees(cudaMemcpyKind kind, Where to, Where from) {
  const auto host = [](Where w) { return w != Where::kDevice; };
  const auto device = [](Where w) { return w != Where::kPageable; };
  switch (kind) {
    case cudaMemcpyHostToHost:
      return host(to) && host(from);
    case cudaMemcpyHostToDevice:
      return device(to) && host(from);
    case cudaMemcpyDeviceToHost:
      return host(to) && device(from);
    case cudaMemcpyDeviceToDevice:
      return device(to) && device(from);
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

int copy_piece(const char* name, std::uint8_t* to, const std::uint8_t* from, const CopyShape& shape,
               cudaStream_t stream, Wait wait) {
  const bool from_pageable = where(from) == Where::kPageable, to_pageable = where(to) == Where::kPageable;
  Call call(wire::Op::kCopy, name);
  call.in.u64(number(to)).u64(number(from)).u64(shape.width).u64(shape.height).u64(shape.to_pitch);
  call.in.u64(shape.from_pitch).u64(number(stream)).u8(static_cast<std::uint8_t>(wait));
  call.in.u8(from_pageable ? 1 : 0).u8(to_pageable ? 1 : 0);
  if (from_pageable) {
    std::uint8_t* room = call.in.room(shape.width * shape.height);
    for (std::uint64_t row = 0; row < shape.height; ++row) {
      std::memcpy(room + row * shape.width, from + row * shape.from_pitch, shape.width);
    }
  } else {
    call.in.blob(nullptr, 0);
  }
  if (const int error = call.send(); error != kSuccess) return error;
  if (to_pageable) {
    const std::string_view bytes = call.out.blob();  // empty while the stream is being captured
    if (bytes.size() == shape.width * shape.height) {
      for (std::uint64_t row = 0; row < shape.height; ++row) {
        std::memcpy(to + row * shape.to_pitch, bytes.data() + row * shape.width, shape.width);
      }
    }
  }
  return kSuccess;
}

int host_to_host(const char* name, std::uint8_t* to, const std::uint8_t* from, const CopyShape& shape,
                 cudaStream_t stream) {
  Call call(wire::Op::kStreamSync, name);
  call.in.u64(number(stream));
  if (const int error = call.send(); error != kSuccess) return error;
  for (std::uint64_t row = 0; row < shape.height; ++row) {
    std::memmove(to + row * shape.to_pitch, from + row * shape.from_pitch, shape.width);
  }
  return kSuccess;
}

}  // namespace

int copy(const char* name, void* to, const void* from, const CopyShape& shape, cudaMemcpyKind kind,
         cudaStream_t stream, Wait wait) {
  if (const int error = ready(); error != kSuccess) return error;
  if (shape.width == 0 || shape.height == 0) return kSuccess;
  if (to == nullptr || from == nullptr) return kInvalidValue;
  if (shape.height > 1 && (shape.to_pitch < shape.width || shape.from_pitch < shape.width)) {
    return static_cast<int>(cudaErrorInvalidPitchValue);
  }
  const Where target = where(to), source = where(from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return static_cast<int>(cudaErrorInvalidMemcpyDirection);
  }
  if (!agrees(kind, target, source)) return kInvalidValue;
  auto* out = static_cast<std::uint8_t*>(to);
  const auto* in = static_cast<const std::uint8_t*>(from);
  if (target == Where::kPageable && source == Where::kPageable)
    return host_to_host(name, out, in, shape, stream);
  if (target != Where::kPageable && source != Where::kPageable)
    return copy_piece(name, out, in, shape, stream, wait);
  // In pieces that a message can carry: part of a row, or whole rows.
  if (shape.height == 1) {
    for (std::uint64_t at = 0; at < shape.width; at += wire::kChunk) {
      const CopyShape piece{std::min(wire::kChunk, shape.width - at), 1, 0, 0};
      if (const int error = copy_piece(name, out + at, in + at, piece, stream, wait); error != kSuccess)
        return error;
    }
    return kSuccess;
  }
  if (shape.width > wire::kChunk) {
    for (std::uint64_t row = 0; row < shape.height; ++row) {
      const CopyShape line{shape.width, 1, 0, 0};
      const int error =
          copy(name, out + row * shape.to_pitch, in + row * shape.from_pitch, line, kind, stream, wait);
      if (error != kSuccess) return error;
    }
    return kSuccess;
  }
  const std::uint64_t rows = std::max<std::uint64_t>(wire::kChunk / shape.width, 1);
  for (std::uint64_t row = 0; row < shape.height; row += rows) {
    CopyShape piece = shape;
    piece.height = std::min(rows, shape.height - row);
    const int error =
        copy_piece(name, out + row * shape.to_pitch, in + row * shape.from_pitch, piece, stream, wait);
    if (error != kSuccess) return error;
  }
  return kSuccess;
}

int write_copy(const char* name, wire::Writer& out, void* to, const void* from, const CopyShape& shape,
               cudaMemcpyKind kind) {
  if (to == nullptr || from == nullptr || shape.width == 0 || shape.height == 0) return kInvalidValue;
  if (shape.height > 1 && (shape.to_pitch < shape.width || shape.from_pitch < shape.width))
    return static_cast<int>(cudaErrorInvalidPitchValue);
  const Where target = where(to), source = where(from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return static_cast<int>(cudaErrorInvalidMemcpyDirection);
  if (!agrees(kind, target, source)) return kInvalidValue;
  if (target == Where::kPageable && source == Where::kPageable)
    return unsupported(name, "a node that copies between pageable buffers of the host: use a host node");
  out.u64(number(to)).u64(number(from)).u64(shape.width).u64(shape.height).u64(shape.to_pitch);
  out.u64(shape.from_pitch).u64(0).u8(0);
  out.u8(source == Where::kPageable ? 1 : 0).u8(target == Where::kPageable ? 1 : 0).blob(nullptr, 0);
  return kSuccess;
}

int write_fill(wire::Writer& out, void* p, const FillShape& shape) {
  if (shape.width == 0 || shape.height == 0 || (!in_arena(p) && !in_host_range(p))) return kInvalidValue;
  if (shape.element != 1 && shape.element != 2 && shape.element != 4) return kInvalidValue;
  if (number(p) % shape.element != 0) return kInvalidValue;
  out.u64(number(p)).u32(shape.value).u8(shape.element).u64(shape.pitch).u64(shape.width);
  out.u64(shape.height).u64(0).u8(0);
  return kSuccess;
}

int fill(const char* name, void* p, const FillShape& shape, cudaStream_t stream, Wait wait) {
  if (const int error = ready(); error != kSuccess) return error;
  if (shape.width == 0 || shape.height == 0) return kSuccess;
  if ((!in_arena(p) && !in_host_range(p)) || number(p) % shape.element != 0) return kInvalidValue;
  Call call(wire::Op::kFill, name);
  call.in.u64(number(p)).u32(shape.value).u8(shape.element).u64(shape.pitch).u64(shape.width);
  call.in.u64(shape.height).u64(number(stream)).u8(static_cast<std::uint8_t>(wait));
  return call.send();
}

namespace {

// CUDA orders memset of device memory with the stream and does not make the host wait.
Wait fill_wait(const void* p) { return in_arena(p) ? Wait::kAsync : Wait::kSync; }
FillShape bytes_of(int value, std::size_t n) { return {n, n, 1, static_cast<std::uint8_t>(value), 1}; }
FillShape rows_of(std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return {pitch, width, height, static_cast<std::uint8_t>(value), 1};
}

int symbol_copy(const char* name, const void* symbol, std::size_t offset, std::size_t count, void* host_to,
                const void* host_from, cudaMemcpyKind kind, cudaStream_t stream, Wait wait) {
  std::uint64_t address = 0, size = 0;
  if (const int error = find_symbol(symbol, &address, &size); error != kSuccess) return error;
  if (offset > size || count > size - offset) return kInvalidValue;
  auto* device = pointer<std::uint8_t*>(address + offset);
  const CopyShape shape{count, 1, 0, 0};
  // The variable may be managed, which `kind` need not know: the addresses decide, `kind` is only checked for
  // sense.
  const bool to_symbol = host_from != nullptr;
  const cudaMemcpyKind usual = to_symbol ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  if (kind != usual && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
    return static_cast<int>(cudaErrorInvalidMemcpyDirection);
  }
  return to_symbol ? copy(name, device, host_from, shape, cudaMemcpyDefault, stream, wait)
                   : copy(name, host_to, device, shape, cudaMemcpyDefault, stream, wait);
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t n, cudaMemcpyKind kind) {
  return done(copy("cudaMemcpy", to, from, {n, 1, 0, 0}, kind, nullptr, Wait::kSync));
}
ECHOLO_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t n, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return done(copy("cudaMemcpyAsync", to, from, {n, 1, 0, 0}, kind, stream, Wait::kAsync));
}
// Both devices are this process's GPU: a peer's memory is reached through NVSHMEM.
ECHOLO_API cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t n) {
  return done(copy("cudaMemcpyPeer", to, from, {n, 1, 0, 0}, cudaMemcpyDeviceToDevice, nullptr, Wait::kSync));
}
ECHOLO_API cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t n,
                                           cudaStream_t stream) {
  return done(
      copy("cudaMemcpyPeerAsync", to, from, {n, 1, 0, 0}, cudaMemcpyDeviceToDevice, stream, Wait::kAsync));
}
ECHOLO_API cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                    std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return done(
      copy("cudaMemcpy2D", to, from, {width, height, to_pitch, from_pitch}, kind, nullptr, Wait::kSync));
}
ECHOLO_API cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                         std::size_t from_pitch, std::size_t width, std::size_t height,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return done(
      copy("cudaMemcpy2DAsync", to, from, {width, height, to_pitch, from_pitch}, kind, stream, Wait::kAsync));
}
namespace {

// Layer by layer: each is a copy in two dimensions.
int copy_3d(const char* name, const cudaMemcpy3DParms* c, cudaStream_t stream, Wait wait) {
  if (c == nullptr) return kInvalidValue;
  if (c->srcArray != nullptr || c->dstArray != nullptr)
    return unsupported(name, "CUDA arrays are not modelled by the virtual node");
  const cudaPitchedPtr &from = c->srcPtr, &to = c->dstPtr;
  const CopyShape shape{c->extent.width, c->extent.height, to.pitch, from.pitch};
  for (std::size_t z = 0; z < c->extent.depth; ++z) {
    const std::size_t in = ((c->srcPos.z + z) * from.ysize + c->srcPos.y) * from.pitch + c->srcPos.x;
    const std::size_t out = ((c->dstPos.z + z) * to.ysize + c->dstPos.y) * to.pitch + c->dstPos.x;
    const int error = copy(name, static_cast<std::uint8_t*>(to.ptr) + out,
                           static_cast<const std::uint8_t*>(from.ptr) + in, shape, c->kind, stream, wait);
    if (error != kSuccess) return error;
  }
  return kSuccess;
}

}  // namespace

ECHOLO_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* c) {
  return done(copy_3d("cudaMemcpy3D", c, nullptr, Wait::kSync));
}
ECHOLO_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* c, cudaStream_t stream) {
  return done(copy_3d("cudaMemcpy3DAsync", c, stream, Wait::kAsync));
}
ECHOLO_API cudaError_t cudaMemset(void* p, int value, std::size_t n) {
  return done(fill("cudaMemset", p, bytes_of(value, n), nullptr, fill_wait(p)));
}
ECHOLO_API cudaError_t cudaMemsetAsync(void* p, int value, std::size_t n, cudaStream_t stream) {
  return done(fill("cudaMemsetAsync", p, bytes_of(value, n), stream, Wait::kAsync));
}
ECHOLO_API cudaError_t cudaMemset2D(void* p, std::size_t pitch, int value, std::size_t width,
                                    std::size_t height) {
  return done(fill("cudaMemset2D", p, rows_of(pitch, value, width, height), nullptr, fill_wait(p)));
}
ECHOLO_API cudaError_t cudaMemset2DAsync(void* p, std::size_t pitch, int value, std::size_t width,
                                         std::size_t height, cudaStream_t stream) {
  return done(fill("cudaMemset2DAsync", p, rows_of(pitch, value, width, height), stream, Wait::kAsync));
}

ECHOLO_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t n,
                                          std::size_t offset, cudaMemcpyKind kind) {
  if (from == nullptr) return done(kInvalidValue);
  return done(
      symbol_copy("cudaMemcpyToSymbol", symbol, offset, n, nullptr, from, kind, nullptr, Wait::kSync));
}
ECHOLO_API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t n,
                                               std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  if (from == nullptr) return done(kInvalidValue);
  return done(
      symbol_copy("cudaMemcpyToSymbolAsync", symbol, offset, n, nullptr, from, kind, stream, Wait::kAsync));
}
ECHOLO_API cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t n, std::size_t offset,
                                            cudaMemcpyKind kind) {
  if (to == nullptr) return done(kInvalidValue);
  return done(
      symbol_copy("cudaMemcpyFromSymbol", symbol, offset, n, to, nullptr, kind, nullptr, Wait::kSync));
}
ECHOLO_API cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t n,
                                                 std::size_t offset, cudaMemcpyKind kind,
                                                 cudaStream_t stream) {
  if (to == nullptr) return done(kInvalidValue);
  return done(
      symbol_copy("cudaMemcpyFromSymbolAsync", symbol, offset, n, to, nullptr, kind, stream, Wait::kAsync));
}
