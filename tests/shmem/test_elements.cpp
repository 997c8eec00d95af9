#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <type_traits>

#include "shmem/elements.hpp"

// The header's lists name CUDA's 16-bit types; stand-ins of the right size are enough to compare the lists.
struct __half {
  std::uint16_t bits;
};
struct __nv_bfloat16 {
  std::uint16_t bits;
};
#include "nvshmem/nvshmem_types_list.h"

namespace echolo::shmem {
namespace {

const Element& element(std::string_view name) {
  for (const Element& e : elements()) {
    if (e.name == name) return e;
  }
  ADD_FAILURE() << "no element " << name;
  return elements()[0];
}

template <typename T>
void expect_element(const char* name, bool Element::*flag, std::set<std::string>* seen) {
  const Element& e = element(name);
  EXPECT_EQ(e.bytes, sizeof(T)) << name;
  EXPECT_TRUE(e.*flag) << name;
  if constexpr (std::is_integral_v<T>) {
    EXPECT_EQ(e.kind, std::is_signed_v<T> ? ElementClass::kSigned : ElementClass::kUnsigned) << name;
  }
  seen->insert(name);
}

void expect_same_names(bool Element::*flag, const std::set<std::string>& seen) {
  std::set<std::string> flagged;
  for (const Element& e : elements()) {
    if (e.*flag) flagged.insert(std::string(e.name));
  }
  EXPECT_EQ(flagged, seen);
}

TEST(Elements, AgreeWithTheHeadersLists) {
  std::set<std::string> rma, wait, bitwise, standard, extended, bitwise_reduce, arith;
#define EXPECT_RMA(NAME, TYPE) expect_element<TYPE>(#NAME, &Element::rma, &rma);
  ECHOLO_SHMEM_RMA_TYPES(EXPECT_RMA)
#define EXPECT_WAIT(NAME, TYPE) expect_element<TYPE>(#NAME, &Element::wait, &wait);
  ECHOLO_SHMEM_WAIT_TYPES(EXPECT_WAIT)
#define EXPECT_BITWISE(NAME, TYPE) expect_element<TYPE>(#NAME, &Element::bitwise_amo, &bitwise);
  ECHOLO_SHMEM_BITWISE_AMO_TYPES(EXPECT_BITWISE)
#define EXPECT_STANDARD(NAME, TYPE) expect_element<TYPE>(#NAME, &Element::standard_amo, &standard);
  ECHOLO_SHMEM_STANDARD_AMO_TYPES(EXPECT_STANDARD)
#define EXPECT_EXTENDED(NAME, TYPE) expect_element<TYPE>(#NAME, &Element::extended_amo, &extended);
  ECHOLO_SHMEM_EXTENDED_AMO_TYPES(EXPECT_EXTENDED)
#define EXPECT_BITWISE_REDUCE(NAME, TYPE) \
  expect_element<TYPE>(#NAME, &Element::bitwise_reduce, &bitwise_reduce);
  ECHOLO_SHMEM_BITWISE_REDUCE_TYPES(EXPECT_BITWISE_REDUCE)
#define EXPECT_ARITH(NAME, TYPE) expect_element<TYPE>(#NAME, &Element::arith_reduce, &arith);
  ECHOLO_SHMEM_ARITH_REDUCE_TYPES(EXPECT_ARITH)
  expect_same_names(&Element::rma, rma);
  expect_same_names(&Element::wait, wait);
  expect_same_names(&Element::bitwise_amo, bitwise);
  expect_same_names(&Element::standard_amo, standard);
  expect_same_names(&Element::extended_amo, extended);
  expect_same_names(&Element::bitwise_reduce, bitwise_reduce);
  expect_same_names(&Element::arith_reduce, arith);
}

TEST(Elements, ReduceInTheirOwnType) {
  EXPECT_EQ(reduce(element("uint8"), Reduction::kSum, 200, 100), 44U);
  EXPECT_EQ(reduce(element("int8"), Reduction::kMax, 0xff, 1), 1U);  // -1 against 1
  EXPECT_EQ(reduce(element("uint8"), Reduction::kMax, 0xff, 1), 0xffU);
  EXPECT_EQ(reduce(element("int32"), Reduction::kMin, 0xffffffffU, 1), 0xffffffffU);
  EXPECT_EQ(reduce(element("uint64"), Reduction::kXor, 5, 3), 6U);
  EXPECT_EQ(reduce(element("float"), Reduction::kSum, std::bit_cast<std::uint32_t>(0.1F),
                   std::bit_cast<std::uint32_t>(0.2F)),
            std::bit_cast<std::uint32_t>(0.1F + 0.2F));
  EXPECT_EQ(reduce(element("double"), Reduction::kProd, std::bit_cast<std::uint64_t>(3.0),
                   std::bit_cast<std::uint64_t>(0.5)),
            std::bit_cast<std::uint64_t>(1.5));
}

TEST(Elements, RoundHalvesToNearestEven) {
  const Element& half = element("half");
  EXPECT_EQ(reduce(half, Reduction::kSum, 0x3c00, 0x3c00), 0x4000U);   // 1 + 1
  EXPECT_EQ(reduce(half, Reduction::kSum, 0x6800, 0x3c00), 0x6800U);   // 2048 + 1: a tie, to even
  EXPECT_EQ(reduce(half, Reduction::kSum, 0x6801, 0x3c00), 0x6802U);   // 2050 + 1: a tie, to even
  EXPECT_EQ(reduce(half, Reduction::kSum, 0x7bff, 0x7bff), 0x7c00U);   // overflow: infinity
  EXPECT_EQ(reduce(half, Reduction::kSum, 0x0001, 0x0001), 0x0002U);   // subnormals
  EXPECT_EQ(reduce(half, Reduction::kProd, 0x0400, 0x3800), 0x0200U);  // 2^-14 * 0.5: subnormal
  EXPECT_EQ(reduce(half, Reduction::kProd, 0x0001, 0x3800), 0x0000U);  // half of the least: a tie, to even
  EXPECT_EQ(reduce(half, Reduction::kProd, 0x0003, 0x3800), 0x0002U);
  EXPECT_EQ(reduce(half, Reduction::kProd, 0x8400, 0x3800), 0x8200U);
  EXPECT_EQ(reduce(element("bfloat16"), Reduction::kSum, 0x3f80, 0x3f80), 0x4000U);
  EXPECT_EQ(reduce(element("bfloat16"), Reduction::kSum, 0x4380, 0x3f80),
            0x4380U);  // 256 + 1: a tie, to even
}

TEST(Elements, CompareAsTheirTypeDoes) {
  const Element& i32 = element("int32");
  const Element& u32 = element("uint32");
  EXPECT_TRUE(compare(i32, 4, 0xffffffffU, 0));  // -1 < 0
  EXPECT_FALSE(compare(u32, 4, 0xffffffffU, 0));
  EXPECT_TRUE(compare(u32, 5, 3, 3));
  EXPECT_FALSE(compare(u32, 2, 3, 3));
  EXPECT_TRUE(compare(u32, 1, 3, 4));
  EXPECT_FALSE(compare(u32, 17, 3, 3));
  EXPECT_EQ(print(i32, 0xffffffffU), "-1");
  EXPECT_EQ(print(u32, 0xffffffffU), "4294967295");
  EXPECT_EQ(print(element("half"), 0x3e00), "1.5");
}

}  // namespace
}  // namespace echolo::shmem
