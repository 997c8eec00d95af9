// The virtual ALU against results that an H200 gave (tests/gpu/golden): 1,024 operands for each form. Bit for
// bit, but for the approximate forms, whose class says how far from the hardware they may be: both lie within
// the ISA's error of the true value, so twice that.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "alu_harness.hpp"
#include "golden_vectors.hpp"

namespace echolo::vgpu {
namespace {

const std::string kFolder = std::string(ECHOLO_SOURCE_DIR) + "/tests/alu/golden/";

struct Recorded {
  std::string form;
  std::uint64_t hash = 0;
};
std::vector<Recorded> recorded() {
  std::vector<Recorded> all;
  std::ifstream file(kFolder + "h200.txt");
  for (std::string line; std::getline(file, line);)
    all.push_back({line.substr(17), std::stoull(line.substr(0, 16), nullptr, 16)});
  return all;
}

// Video instructions of one lane that do more than one step: what ptxas makes of them for Hopper is not what
// the ISA says, which the virtual ALU follows (video.cpp); tests/vgpu/alu_video.cpp has values worked out
// from the ISA.
bool follows_the_isa_instead(const std::string& form) {
  const std::vector<std::string> words = golden::words_of(form);
  const std::string& name = words[0];
  if (name[0] != 'v' || name == "vote" || name.back() == '2' || name.back() == '4') return false;
  if (golden::operands_of(form)[0].find('.') != std::string::npos) return true;  // a part of D
  for (const std::string& word : words) {
    if (word == "sat" || word == "min" || word == "max" || word == "add" || word == "shr7" || word == "shr15")
      return true;
  }
  return false;
}

TEST(AluGolden, ExactFormsGiveTheSameBits) {
  std::size_t compared = 0;
  for (const Recorded& one : recorded()) {
    const bool control = one.form.starts_with("elect") || one.form.starts_with("activemask");  // core's own
    if (control || golden::is_approximate(one.form) || golden::contains(one.form, ".oob")) continue;
    if (follows_the_isa_instead(one.form)) continue;
    const golden_vectors::Run run = golden_vectors::run(one.form);
    EXPECT_EQ(run.error, "") << one.form;
    EXPECT_EQ(golden::hash_of(run.bytes.data(), run.bytes.size()), one.hash) << one.form;
    ++compared;
  }
  EXPECT_GE(compared, 2600U);
}

// The error that the ISA states (9.7.3, 9.7.4). Relative errors count from the smallest normal number
// upwards.
struct ErrorClass {
  const char* prefix;
  double relative;      // of the result
  double absolute;      // or, where this is not 0, absolute
  double most_operand;  // for |first operand| up to this
};
constexpr double kAll = 1e40;
constexpr double kUlp = 0x1p-23;
const ErrorClass kClasses[] = {
    {"rcp.approx.ftz.f64", 0x1p-20, 0, kAll}, {"rsqrt.approx.ftz.f64", 0x1p-20, 0, kAll},
    {"rsqrt.approx.f64", 0x1p-20, 0, kAll},   {"rcp.approx", kUlp, 0, kAll},
    {"sqrt.approx", kUlp, 0, kAll},           {"rsqrt.approx", 0x1.2p-23, 0, kAll},
    {"div.approx", 2 * kUlp, 0, kAll},        {"div.full", 2 * kUlp, 0, kAll},
    {"sin.approx", 0, 0x1.7p-21, 3.14159},    {"cos.approx", 0, 0x1.7p-21, 3.14159},
    {"lg2.approx", 0x1p-22, 0x1p-22, kAll},   {"ex2.approx.f16", 0x1.15p-10, 0, kAll},
    {"ex2.approx.ftz.bf16", 0x1p-7, 0, kAll}, {"ex2.approx", 2 * kUlp, 0, kAll},
    {"tanh.approx.f32", 0x1p-11, 0, kAll},    {"tanh.approx.f16", 0, 0x1.03p-11, kAll},
    {"tanh.approx.bf16", 0, 0x1p-8, kAll},
};

const ErrorClass* class_of(const std::string& form) {
  for (const ErrorClass& one : kClasses) {
    if (form.starts_with(one.prefix)) return &one;
  }
  return nullptr;
}

double value_of(std::uint64_t bits, int width, bool bf16) {
  if (width == 64) return alu_test::as_f64(bits);
  if (width == 32) return alu_test::as_f32(bits);
  if (bf16) return alu_test::as_f32(bits << 16U);
  const double fraction = static_cast<double>(bits & 0x3ffU);
  const auto exponent = static_cast<int>(bits >> 10U & 0x1fU);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

// Empty where the two agree well enough.
std::string complaint(const ErrorClass& bound, double hardware, double ours, double operand, int width) {
  if (std::fabs(operand) > bound.most_operand) return {};
  if (std::isnan(hardware) || std::isnan(ours)) return std::isnan(hardware) == std::isnan(ours) ? "" : "NaN";
  if (hardware == ours) return {};
  if (std::isinf(hardware) || std::isinf(ours)) {
    const double finite = std::isinf(hardware) ? ours : hardware;
    return std::fabs(finite) >= (width == 16 ? 65000.0 : 3.4e38) ? "" : "infinity";
  }
  const double smallest = width == 64 ? 0x1p-1022 : (width == 32 ? 0x1p-126 : 0x1p-14);
  const double difference = std::fabs(hardware - ours);
  const double scale = std::max(std::max(std::fabs(hardware), std::fabs(ours)), smallest);
  if (difference <= 2 * bound.relative * scale || difference <= 2 * bound.absolute) return {};
  return "differs by " + std::to_string(difference / scale * 0x1p23) + " * 2^-23";
}

TEST(AluGolden, ApproximateFormsAreWithinTheStatedError) {
  std::ifstream values(kFolder + "h200-approximate.bin", std::ios::binary);
  std::size_t compared = 0;
  for (const Recorded& one : recorded()) {
    if (!golden::is_approximate(one.form)) continue;
    const golden::Case c = golden::make_case(one.form);
    std::vector<std::uint8_t> hardware(golden_vectors::result_bytes(c));
    values.read(reinterpret_cast<char*>(hardware.data()), static_cast<std::streamsize>(hardware.size()));
    ASSERT_TRUE(values.good());
    EXPECT_EQ(golden::hash_of(hardware.data(), hardware.size()), one.hash)
        << one.form << ": the files disagree";
    const ErrorClass* bound = class_of(one.form);
    ASSERT_NE(bound, nullptr) << one.form;
    const golden_vectors::Run run = golden_vectors::run(one.form);
    ASSERT_EQ(run.error, "") << one.form;
    const bool pairs = golden::contains(one.form, "16x2"), bf16 = golden::contains(one.form, "bf16");
    const int width = pairs ? 16 : golden::register_bits(c.destinations.at(0));
    const auto bytes = static_cast<std::size_t>(width / 8);
    int shown = 0;
    for (std::size_t at = 0; at < hardware.size() && shown < 3; at += bytes) {
      std::uint64_t want = 0, got = 0;
      std::memcpy(&want, &hardware[at], bytes);
      std::memcpy(&got, &run.bytes[at], bytes);
      const auto thread = static_cast<int>(at / bytes / (pairs ? 2 : 1));
      const std::uint64_t in = golden::make_operand(one.form, c.sources[0], 0, thread)[0];
      const double operand = value_of(pairs ? in >> (at / bytes % 2 * 16) & 0xffffU : in, width, bf16);
      const std::string said =
          complaint(*bound, value_of(want, width, bf16), value_of(got, width, bf16), operand, width);
      if (said.empty()) continue;
      ADD_FAILURE() << one.form << " of " << std::hex << in << ": the GPU gives " << want << ", we " << got
                    << ": " << said;
      ++shown;
    }
    ++compared;
  }
  EXPECT_GE(compared, 25U);
}

}  // namespace
}  // namespace echolo::vgpu
