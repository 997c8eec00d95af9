#include "ptx/types.hpp"

#include <array>

namespace echolo::ptx {
namespace {

struct TypeInfo {
  std::string_view name;
  std::uint8_t bits;
  bool floating;
  bool is_signed;
};

// In the order of enum Type.
constexpr std::array<TypeInfo, 36> kTypes = {{
    {"", 0, false, false},       {"pred", 1, false, false},   {"u8", 8, false, false},
    {"u16", 16, false, false},   {"u32", 32, false, false},   {"u64", 64, false, false},
    {"s8", 8, false, true},      {"s16", 16, false, true},    {"s32", 32, false, true},
    {"s64", 64, false, true},    {"b8", 8, false, false},     {"b16", 16, false, false},
    {"b32", 32, false, false},   {"b64", 64, false, false},   {"b128", 128, false, false},
    {"f16", 16, true, false},    {"f16x2", 32, true, false},  {"bf16", 16, true, false},
    {"bf16x2", 32, true, false}, {"tf32", 32, true, false},   {"f32", 32, true, false},
    {"f32x2", 64, true, false},  {"f64", 64, true, false},    {"u16x2", 32, false, false},
    {"s16x2", 32, false, true},  {"b1", 1, false, false},     {"u4", 4, false, false},
    {"s4", 4, false, true},      {"e4m3", 8, true, false},    {"e5m2", 8, true, false},
    {"e4m3x2", 16, true, false}, {"e5m2x2", 16, true, false}, {"e2m3x2", 16, true, false},
    {"e3m2x2", 16, true, false}, {"e2m1x2", 8, true, false},  {"ue8m0x2", 16, true, false},
}};
static_assert(static_cast<std::size_t>(Type::kUe8m0x2) + 1 == kTypes.size());

const TypeInfo& info(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

int bits_of(Type type) { return info(type).bits; }
int bytes_of(Type type) { return (info(type).bits + 7) / 8; }
bool is_float(Type type) { return info(type).floating; }
bool is_signed(Type type) { return info(type).is_signed; }
std::string_view name_of(Type type) { return info(type).name; }

}  // namespace echolo::ptx
