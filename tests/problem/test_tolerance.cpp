#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "problem/tolerance.hpp"

namespace echolo {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A tensor that owns what it holds.
template <typename T>
struct Owned {
  Owned(DType dtype, std::vector<T> values) : data(std::move(values)) {
    view = {{"y", dtype, {static_cast<std::int64_t>(data.size())}}, std::as_bytes(std::span(data))};
  }
  std::vector<T> data;
  TensorView view;
};

Owned<float> f32(std::vector<float> values) { return {DType::kF32, std::move(values)}; }
Owned<double> f64(std::vector<double> values) { return {DType::kF64, std::move(values)}; }
Owned<std::int32_t> i32(std::vector<std::int32_t> values) { return {DType::kI32, std::move(values)}; }

OutputNoise noise_of(double relative) { return {"y", relative, 0, false}; }

TEST(DTypes, DecodeTheirExtremes) {
  const std::uint16_t half[] = {0x3c00, 0x0001, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x8000};
  EXPECT_EQ(element_as_double(half, DType::kF16, 0), 1.0);
  EXPECT_EQ(element_as_double(half, DType::kF16, 1), 0x1p-24);
  EXPECT_EQ(element_as_double(half, DType::kF16, 2), 65504.0);
  EXPECT_EQ(element_as_double(half, DType::kF16, 3), kInf);
  EXPECT_EQ(element_as_double(half, DType::kF16, 4), -kInf);
  EXPECT_TRUE(std::isnan(element_as_double(half, DType::kF16, 5)));
  EXPECT_TRUE(std::signbit(element_as_double(half, DType::kF16, 6)));
  const std::uint16_t brain[] = {0x3f80, 0xc000};
  EXPECT_EQ(element_as_double(brain, DType::kBf16, 1), -2.0);
  const std::uint8_t eight[] = {0x7e, 0x7f, 0x01, 0x38, 0x7b, 0x7c};
  EXPECT_EQ(element_as_double(eight, DType::kF8E4M3, 0), 448.0);
  EXPECT_TRUE(std::isnan(element_as_double(eight, DType::kF8E4M3, 1)));
  EXPECT_EQ(element_as_double(eight, DType::kF8E4M3, 2), 0x1p-9);
  EXPECT_EQ(element_as_double(eight, DType::kF8E4M3, 3), 1.0);
  EXPECT_EQ(element_as_double(eight, DType::kF8E5M2, 4), 57344.0);
  EXPECT_EQ(element_as_double(eight, DType::kF8E5M2, 5), kInf);
  for (const DType dtype : kAllDTypes) EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
}

TEST(Tolerance, AllowsFourTimesTheReferencesOwnError) {
  const auto oracle = f64({1.0, -2.0, 4.0});
  const auto noise = measure_noise(f32({1.0F, -2.002F, 4.0F}).view, oracle.view);
  ASSERT_TRUE(noise.ok());
  EXPECT_FALSE(noise->exact);
  const double rms = std::sqrt((1.0 + 4 + 16) / 3);
  EXPECT_NEAR(noise->relative, 0.002 / rms, 1e-6);
  EXPECT_NEAR(noise->max_abs, 0.002, 1e-6);
  const auto inside = compare(f32({1.0079F, -2.0F, 4.0F}).view, oracle.view, *noise);
  EXPECT_TRUE(inside->ok);
  EXPECT_EQ(inside->worst, 0);
  EXPECT_NEAR(inside->allowed, 0.008, 1e-5);
  const auto outside = compare(f32({1.0081F, -2.0F, 4.0F}).view, oracle.view, *noise);
  EXPECT_FALSE(outside->ok);
  EXPECT_EQ(outside->n_wrong, 1);
  EXPECT_NEAR(outside->max_error, 0.0081, 1e-6);
  // Larger elements may be off by more: the error is relative to them.
  EXPECT_TRUE(compare(f32({1.0F, -2.0F, 4.012F}).view, oracle.view, *noise)->ok);
}

TEST(Tolerance, HasAFloorAndTightensOnly) {
  const auto oracle = f64({1.0, 1.0});
  EXPECT_TRUE(compare(f32({1.0F + 0x1p-23F, 1.0F}).view, oracle.view, noise_of(1e-30))->ok);
  EXPECT_FALSE(compare(f32({1.0F + 0x1p-22F, 1.0F}).view, oracle.view, noise_of(1e-30))->ok);
  ToleranceSpec tight;
  tight.floor = 0;
  EXPECT_FALSE(compare(f32({1.0F + 0x1p-23F, 1.0F}).view, oracle.view, noise_of(1e-30), tight)->ok);
  tight.k = 1;
  EXPECT_FALSE(compare(f32({1.02F, 1.0F}).view, oracle.view, noise_of(0.01), tight)->ok);
  ToleranceSpec loose;
  loose.k = 1000;
  loose.floor = 1;
  EXPECT_FALSE(compare(f32({1.05F, 1.0F}).view, oracle.view, noise_of(0.01), loose)->ok);
}

TEST(Tolerance, IsBitForBitWhereTheReferenceIs) {
  const auto oracle = f64({1.0, 0.0, kNan});
  const auto noise = measure_noise(f32({1.0F, 0.0F, NAN}).view, oracle.view);
  EXPECT_TRUE(noise->exact);
  EXPECT_TRUE(compare(f32({1.0F, 0.0F, NAN}).view, oracle.view, *noise)->ok);
  EXPECT_FALSE(compare(f32({1.0F + 0x1p-23F, 0.0F, NAN}).view, oracle.view, *noise)->ok);
  const auto zero = compare(f32({1.0F, -0.0F, NAN}).view, oracle.view, *noise);
  EXPECT_FALSE(zero->ok);
  EXPECT_EQ(zero->worst, 1);
  EXPECT_TRUE(merge_noise(*noise, *noise).exact);
  EXPECT_FALSE(merge_noise(*noise, noise_of(0.1)).exact);
}

TEST(Tolerance, NanAndInfinityMatchOnlyThemselves) {
  const auto oracle = f64({1.0, kNan, kInf, -kInf});
  EXPECT_TRUE(compare(f32({1.0F, NAN, INFINITY, -INFINITY}).view, oracle.view, noise_of(0.1))->ok);
  for (const auto& wrong : {std::vector<float>{NAN, NAN, INFINITY, -INFINITY},
                            {1.0F, 1.0F, INFINITY, -INFINITY},
                            {1.0F, NAN, -INFINITY, -INFINITY},
                            {1.0F, NAN, INFINITY, 3e38F},
                            {INFINITY, NAN, INFINITY, -INFINITY}}) {
    const auto result = compare(f32(wrong).view, oracle.view, noise_of(0.1));
    EXPECT_FALSE(result->ok);
    EXPECT_EQ(result->n_wrong, 1);
    EXPECT_EQ(result->max_error, kInf);
  }
  EXPECT_FALSE(measure_noise(f32({INFINITY, NAN, INFINITY, -INFINITY}).view, oracle.view).ok());
}

TEST(Tolerance, IntegersAreExactBeyondDoubles) {
  EXPECT_TRUE(measure_noise(i32({1, 2}).view, i32({1, 2}).view)->exact);
  EXPECT_FALSE(measure_noise(i32({1, 2}).view, i32({1, 3}).view).ok());
  const auto result = compare(i32({1, 2, 7}).view, i32({1, 3, 7}).view, noise_of(100));
  EXPECT_FALSE(result->ok);
  EXPECT_EQ(result->worst, 1);
  EXPECT_EQ(result->max_error, 1);
  const Owned<std::int64_t> big(DType::kI64, {(std::int64_t{1} << 60) + 1});
  const Owned<std::int64_t> near(DType::kI64, {std::int64_t{1} << 60});
  EXPECT_FALSE(compare(big.view, near.view, noise_of(1))->ok);
}

TEST(Tolerance, F64IsNeverBitForBit) {
  const auto noise = measure_noise(f64({1.0}).view, f64({1.0}).view);
  EXPECT_FALSE(noise->exact);
  EXPECT_TRUE(compare(f64({1.0 + 0x1p-50}).view, f64({1.0}).view, *noise)->ok);
  EXPECT_FALSE(compare(f64({1.0 + 0x1p-40}).view, f64({1.0}).view, *noise)->ok);
}

TEST(Tolerance, FindsWhatWasNeverWritten) {
  for (const DType dtype : kAllDTypes) {
    std::vector<std::byte> bytes(dtype_bytes(dtype) * 4);
    poison(bytes);
    const TensorView out{{"y", dtype, {2, 2}}, bytes};
    const DType wide = dtype_is_float(dtype) ? DType::kF64 : dtype;
    const std::vector<std::byte> zeros(dtype_bytes(wide) * 4);
    const auto result = compare(out, {{"y", wide, {2, 2}}, zeros}, noise_of(0.5));
    ASSERT_TRUE(result.ok());
    EXPECT_FALSE(result->ok) << dtype_name(dtype);
    EXPECT_EQ(result->n_unwritten, 4) << dtype_name(dtype);
    EXPECT_EQ(result->first_unwritten, 0);
    // Read as one byte, the pattern's two values differ, and the worse one is named.
    const std::string worst = dtype_bytes(dtype) > 1 ? "y[0, 0]" : "y[0, ";
    EXPECT_NE(describe(*result, out.info).find(worst), std::string::npos) << describe(*result, out.info);
    EXPECT_NE(describe(*result, out.info).find("4 were never written"), std::string::npos);
  }
}

TEST(Tolerance, ComparesOnlyValidRows) {
  auto out = f32({1, 2, 9, 9});
  auto oracle = f64({1, 2, 0, 0});
  EXPECT_TRUE(compare(out.view, oracle.view, noise_of(0.001), {}, 2)->ok);
  EXPECT_EQ(compare(out.view, oracle.view, noise_of(0.001), {}, 2)->n_compared, 2);
  EXPECT_FALSE(compare(out.view, oracle.view, noise_of(0.001), {}, 3)->ok);
  EXPECT_FALSE(compare(out.view, oracle.view, noise_of(0.001), {}, 5).ok());
  EXPECT_TRUE(compare(out.view, oracle.view, noise_of(0.001), {}, 0)->ok);
  EXPECT_EQ(compare(out.view, oracle.view, noise_of(0.001), {}, 0)->worst, -1);
}

TEST(Tolerance, RefusesPairsThatDoNotBelongTogether) {
  EXPECT_FALSE(compare(f32({1}).view, f64({1, 2}).view, noise_of(1)).ok());
  EXPECT_FALSE(compare(f32({1}).view, f32({1}).view, noise_of(1)).ok());
}

}  // namespace
}  // namespace echolo
