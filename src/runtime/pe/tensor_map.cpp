// Tensor maps of TMA (CUDA driver API, "Tensor Map Object Management").
#include <cuda.h>

#include <cstring>
#include <string>

#include "runtime/pe/cudart.hpp"
#include "vgpu/memory/tensor_map.hpp"

namespace echolo::runtime::pe {
namespace {

using vgpu::TensorMap;
using vgpu::TensorSwizzle;

// Bytes of an element, by CUtensorMapDataType; 0: packed types that sm_90 does not have.
constexpr std::uint8_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

CUresult refuse(const std::string& what) {
  unsupported("cuTensorMapEncodeTiled", what);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult encode(CUtensorMap* out, CUtensorMapDataType type, unsigned rank, void* address,
                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                CUtensorMapFloatOOBfill fill) {
  if (out == nullptr || dims == nullptr || box == nullptr || steps == nullptr || rank < 1 || rank > 5 ||
      (rank > 1 && strides == nullptr) || number(out) % 64 != 0 || number(address) % 16 != 0 ||
      address == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<std::size_t>(type) >= std::size(kElementBytes))
    return refuse("packed 4 and 6 bit elements exist from sm_100 on");
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
    return refuse("interleaved layouts are not executed by the virtual node");
  if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return refuse("this swizzle exists from sm_100 on");
  TensorMap map;
  map.address = number(address);
  map.rank = static_cast<std::uint8_t>(rank);
  map.type = static_cast<std::uint8_t>(type);
  map.element = kElementBytes[type];
  map.swizzle = static_cast<TensorSwizzle>(swizzle);
  map.fills_nan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  const bool floats = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ||
                      (type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT32 && type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  if (map.fills_nan && !floats) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < rank; ++i) {
    if (dims[i] == 0 || dims[i] > (1ULL << 32U) || box[i] == 0 || box[i] > 256 || steps[i] == 0 ||
        steps[i] > 8)
      return CUDA_ERROR_INVALID_VALUE;
    map.last[i] = static_cast<std::uint32_t>(dims[i] - 1);
    map.box[i] = static_cast<std::uint16_t>(box[i]);
    map.steps[i] = i == 0 ? std::uint8_t{1} : static_cast<std::uint8_t>(steps[i]);
    if (i == 0) continue;
    if (strides[i - 1] % 16 != 0 || strides[i - 1] >= (1ULL << 40U)) return CUDA_ERROR_INVALID_VALUE;
    map.strides[i - 1] = strides[i - 1];
  }
  const std::uint64_t row = std::uint64_t{box[0]} * map.element;
  if (row % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  if (map.swizzle != TensorSwizzle::kNone) {
    const std::uint64_t span = 16ULL << static_cast<unsigned>(map.swizzle);
    if (row > span) return CUDA_ERROR_INVALID_VALUE;
  }
  if (!map.valid()) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof map == sizeof *out);
  std::memcpy(out, &map, sizeof map);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

// L2 promotion is a hint.
ECHOLO_API CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                           void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                           const cuuint32_t* box, const cuuint32_t* steps,
                                           CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  return encode(out, type, rank, address, dims, strides, box, steps, interleave, swizzle, fill);
}

ECHOLO_API CUresult cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                            const cuuint64_t*, const cuuint64_t*, const int*, const int*,
                                            cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave,
                                            CUtensorMapSwizzle, CUtensorMapL2promotion,
                                            CUtensorMapFloatOOBfill) {
  unsupported("cuTensorMapEncodeIm2col", "only tile mode is executed by the virtual node");
  return CUDA_ERROR_NOT_SUPPORTED;
}

ECHOLO_API CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  if (map == nullptr || number(address) % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  TensorMap own;
  std::memcpy(static_cast<void*>(&own), map, sizeof own);
  if (!own.valid()) return CUDA_ERROR_INVALID_VALUE;
  own.address = number(address);
  std::memcpy(map, &own, sizeof own);
  return CUDA_SUCCESS;
}
