// Texture objects of the virtual node (CUDA runtime API, "Texture Object Management"): what
// cudaCreateTextureObject puts into device memory; the object's handle is its address.
#pragma once

#include <cstdint>

namespace echolo::vgpu {

enum class TextureShape : std::uint8_t { kLinear, kPitch2D };
enum class TexelFormat : std::uint8_t { kSigned, kUnsigned, kFloat };
enum class TextureAddressing : std::uint8_t { kWrap, kClamp, kMirror, kBorder };  // as cudaTextureAddressMode

struct TextureObject {
  static constexpr std::uint64_t kMagic = 0x4550'414d'5445'5831ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t address = 0;  // of the first texel
  std::uint64_t pitch = 0;    // bytes of a row
  std::uint32_t width = 0, height = 1;
  std::uint8_t bits[4] = {0, 0, 0, 0};  // of each channel; 0: absent
  TextureShape shape{};
  TexelFormat format{};
  TextureAddressing addressing[2]{};
  bool normalized_read = false;         // integers are read as [0, 1] or [-1, 1]
  bool normalized_coordinates = false;  // [0, 1) spans the texture

  std::uint32_t texel_bytes() const { return (bits[0] + bits[1] + bits[2] + bits[3]) / 8U; }
  bool valid() const {
    const bool channels = bits[0] == 8 || bits[0] == 16 || bits[0] == 32;
    return magic == kMagic && channels && width > 0 && height > 0 && texel_bytes() <= 16 &&
           !(format == TexelFormat::kFloat && bits[0] == 8);
  }
};

}  // namespace echolo::vgpu
