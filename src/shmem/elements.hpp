// The element types of the NVSHMEM API, and arithmetic on one element as bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace echolo::shmem {

enum class ElementClass : std::uint8_t { kSigned, kUnsigned, kFloat, kDouble, kHalf, kBfloat16, kBytes };

struct Element {
  std::string_view name;  // "float", "uint64", "longlong"; "mem" and "8" .. "128" for untyped forms
  std::uint8_t bytes = 1;
  ElementClass kind = ElementClass::kBytes;
  bool rma = false, wait = false, bitwise_amo = false, standard_amo = false, extended_amo = false;
  bool bitwise_reduce = false, arith_reduce = false;
};

std::span<const Element> elements();
const Element& signal_element();                      // of signal words: uint64
const Element& unsigned_element(std::uint8_t bytes);  // 1, 2, 4 or 8 bytes taken as bits
// The low `bytes` bytes as a signed number.
std::int64_t sign_extend(std::uint64_t bits, std::size_t bytes);

enum class Reduction : std::uint8_t { kNone, kAnd, kOr, kXor, kMax, kMin, kSum, kProd };
std::string_view name_of(Reduction op);

// One step of a reduction in the element's own type (NVSHMEM reduces in the type of the buffer). Bits beyond
// the element's width are zero on return.
std::uint64_t reduce(const Element& element, Reduction op, std::uint64_t a, std::uint64_t b);

// NVSHMEM_CMP_*: compares as the element's type does.
bool compare(const Element& element, int cmp, std::uint64_t value, std::uint64_t with);
std::string_view comparison_sign(int cmp);  // ">="; "?" where cmp is none
// The element's value as a person writes it.
std::string print(const Element& element, std::uint64_t bits);

}  // namespace echolo::shmem
