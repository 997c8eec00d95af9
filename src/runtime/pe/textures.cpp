// Texture objects over linear memory (CUDA runtime API, "Texture Object Management"): unfiltered fetches
// only.
#include <cstring>

#include "runtime/pe/cudart.hpp"
#include "vgpu/memory/texture_object.hpp"

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kName = "cudaCreateTextureObject";
using echolo::vgpu::TexelFormat;
using echolo::vgpu::TextureAddressing;
using echolo::vgpu::TextureObject;
using echolo::vgpu::TextureShape;

}  // namespace

ECHOLO_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t* out, const cudaResourceDesc* resource,
                                               const cudaTextureDesc* how, const cudaResourceViewDesc* view) {
  if (out == nullptr || resource == nullptr || how == nullptr) return done(kInvalidValue);
  if (view != nullptr) return done(unsupported(kName, "resource views are not modelled by the virtual node"));
  if (how->filterMode != cudaFilterModePoint)
    return done(unsupported(kName, "filtering is not modelled by the virtual node: use cudaFilterModePoint"));
  if (how->sRGB != 0) return done(unsupported(kName, "sRGB is not modelled by the virtual node"));
  TextureObject texture;
  cudaChannelFormatDesc channels;
  if (resource->resType == cudaResourceTypeLinear) {
    channels = resource->res.linear.desc;
    texture.address = number(resource->res.linear.devPtr);
    texture.shape = TextureShape::kLinear;
  } else if (resource->resType == cudaResourceTypePitch2D) {
    channels = resource->res.pitch2D.desc;
    texture.address = number(resource->res.pitch2D.devPtr);
    texture.shape = TextureShape::kPitch2D;
    texture.width = static_cast<std::uint32_t>(resource->res.pitch2D.width);
    texture.height = static_cast<std::uint32_t>(resource->res.pitch2D.height);
    texture.pitch = resource->res.pitch2D.pitchInBytes;
  } else {
    return done(unsupported(kName, "CUDA arrays are not modelled by the virtual node: use linear memory"));
  }
  const int bits[] = {channels.x, channels.y, channels.z, channels.w};
  for (int i = 0; i < 4; ++i) texture.bits[i] = static_cast<std::uint8_t>(bits[i]);
  if (channels.f > cudaChannelFormatKindFloat || texture.texel_bytes() == 0) return done(kInvalidValue);
  texture.format = static_cast<TexelFormat>(channels.f);
  if (texture.shape == TextureShape::kLinear)
    texture.width = static_cast<std::uint32_t>(resource->res.linear.sizeInBytes / texture.texel_bytes());
  for (int i = 0; i < 2; ++i) texture.addressing[i] = static_cast<TextureAddressing>(how->addressMode[i]);
  texture.normalized_read = how->readMode == cudaReadModeNormalizedFloat;
  texture.normalized_coordinates = how->normalizedCoords != 0;
  if (!texture.valid() || texture.address % texture.texel_bytes() != 0) return done(kInvalidValue);
  void* place = nullptr;
  if (const cudaError_t error = cudaMalloc(&place, sizeof texture); error != cudaSuccess) return error;
  const int error =
      copy(kName, place, &texture, {sizeof texture, 1, 0, 0}, cudaMemcpyHostToDevice, nullptr, Wait::kSync);
  *out = number(place);
  return done(error);
}

ECHOLO_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return cudaFree(pointer<void*>(object));
}

ECHOLO_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
