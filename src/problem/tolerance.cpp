#include "problem/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.hpp"

namespace echolo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The one table of floors: 2u, u the unit roundoff of the type. A result that was rounded twice stays within
// it.
struct Floor {
  DType dtype;
  double relative;
};
constexpr Floor kFloors[] = {{DType::kF64, 0x1p-44}, {DType::kF32, 0x1p-23},   {DType::kF16, 0x1p-10},
                             {DType::kBf16, 0x1p-7}, {DType::kF8E4M3, 0x1p-3}, {DType::kF8E5M2, 0x1p-2}};

// What the virtual node's memory holds before anybody writes it (vgpu/memory/shadow.hpp): as floating-point
// numbers NaNs whose payloads arithmetic does not make, but for the 8-bit ones.
constexpr std::byte poison_byte(std::size_t offset) {
  return static_cast<std::byte>(offset % 2 == 0 ? 0xfb : 0xff);
}

bool is_poison(std::span<const std::byte> bytes, std::size_t begin, std::size_t n) {
  for (std::size_t i = begin; i < begin + n; ++i) {
    if (bytes[i] != poison_byte(i)) return false;
  }
  return true;
}

// Which elements take part: the first n_rows of dimension 0, or all.
Result<std::int64_t> n_elements(const TensorInfo& info, std::int64_t n_rows) {
  const std::int64_t all = info.elements();
  if (n_rows < 0) return all;
  if (info.shape.empty() || n_rows > info.shape[0]) {
    return machine_error("output '" + info.name + "' of shape " + shape_text(info.shape) + " cannot have " +
                         std::to_string(n_rows) + " valid rows");
  }
  return info.shape[0] == 0 ? 0 : all / info.shape[0] * n_rows;
}

Status check_pair(const TensorView& out, const TensorView& oracle) {
  const DType expected = dtype_is_float(out.info.dtype) ? DType::kF64 : out.info.dtype;
  if (out.info.shape != oracle.info.shape || oracle.info.dtype != expected) {
    return machine_error("output '" + out.info.name + "' (" + dtype_name(out.info.dtype) + " " +
                         shape_text(out.info.shape) + ") cannot be compared with an oracle of " +
                         dtype_name(oracle.info.dtype) + " " + shape_text(oracle.info.shape));
  }
  for (const TensorView* view : {&out, &oracle}) {
    if (view->bytes.size() != view->info.bytes()) {
      return machine_error("tensor '" + view->info.name + "' has too few or too many bytes");
    }
  }
  return {};
}

double root_mean_square(const TensorView& oracle, std::int64_t n) {
  double sum = 0;
  std::int64_t n_finite = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = element_as_double(oracle.bytes.data(), oracle.info.dtype, i);
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++n_finite;
  }
  return n_finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(n_finite));
}

// As far apart as can be told: 0 where both are NaN or the same infinity, infinite where only one is.
double distance(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return kInfinity;
  return std::abs(a - b);
}

bool same_bits(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

double scale_of(double oracle, double rms) {
  return std::isfinite(oracle) ? std::max(rms, std::abs(oracle)) : rms;
}

}  // namespace

double tolerance_floor(DType dtype) {
  for (const Floor& floor : kFloors) {
    if (floor.dtype == dtype) return floor.relative;
  }
  return 0;
}

Result<Comparison> compare(const TensorView& out, const TensorView& oracle, const OutputNoise& noise,
                           const ToleranceSpec& tolerance, std::int64_t n_rows) {
  if (Status status = check_pair(out, oracle); !status) return status.error();
  const Result<std::int64_t> n = n_elements(out.info, n_rows);
  if (!n) return n.error();
  const DType dtype = out.info.dtype;
  const bool is_float = dtype_is_float(dtype);
  Comparison result;
  result.exact = noise.exact || tolerance.exact || !is_float;
  result.n_compared = *n;
  const double rms = result.exact ? 0 : root_mean_square(oracle, *n);
  const double floor =
      tolerance.floor >= 0 ? std::min(tolerance.floor, tolerance_floor(dtype)) : tolerance_floor(dtype);
  const double relative = std::max(std::min(tolerance.k, kToleranceFactor) * noise.relative, floor);
  const std::size_t width = dtype_bytes(dtype);

  double worst_ratio = -1;
  for (std::int64_t i = 0; i < *n; ++i) {
    double got;
    double expected;
    double error;
    bool ok;
    double allowed = 0;
    if (is_float) {
      got = element_as_double(out.bytes.data(), dtype, i);
      expected = element_as_double(oracle.bytes.data(), DType::kF64, i);
      error = distance(got, expected);
      if (result.exact) {
        ok = same_bits(got, expected);
      } else {
        allowed = relative * scale_of(expected, rms);
        ok = error <= allowed;
      }
    } else {
      const std::int64_t got_int = element_as_int(out.bytes.data(), dtype, i);
      const std::int64_t expected_int = element_as_int(oracle.bytes.data(), dtype, i);
      got = static_cast<double>(got_int);
      expected = static_cast<double>(expected_int);
      ok = got_int == expected_int;
      // Beyond 2^53 two different integers may be one double; a wrong one is then at least 1 off.
      error = ok ? 0 : std::max(1.0, std::abs(got - expected));
    }
    if (!ok) {
      ++result.n_wrong;
      if (is_poison(out.bytes, static_cast<std::size_t>(i) * width, width)) {
        if (result.n_unwritten++ == 0) result.first_unwritten = i;
      }
    }
    // A wrong element outranks every right one, also where only the sign of a zero is wrong.
    const double ratio =
        ok ? (allowed > 0 ? error / allowed : 0) : std::max(2.0, allowed > 0 ? error / allowed : error + 2);
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      result.worst = i;
      result.max_error = error;
      result.allowed = allowed;
      result.got = got;
      result.expected = expected;
    }
  }
  result.ok = result.n_wrong == 0;
  return result;
}

Result<OutputNoise> measure_noise(const TensorView& reference, const TensorView& oracle,
                                  std::int64_t n_rows) {
  if (Status status = check_pair(reference, oracle); !status) return status.error();
  const Result<std::int64_t> n = n_elements(reference.info, n_rows);
  if (!n) return n.error();
  OutputNoise noise;
  noise.output = reference.info.name;
  noise.exact = reference.info.dtype != DType::kF64;  // there reference and oracle are the same computation
  if (!dtype_is_float(reference.info.dtype)) {
    const std::size_t n_bytes = static_cast<std::size_t>(*n) * dtype_bytes(reference.info.dtype);
    if (n_bytes > 0 && std::memcmp(reference.bytes.data(), oracle.bytes.data(), n_bytes) != 0) {
      return usage_error(
          "output '" + noise.output +
              "' holds integers that differ between the reference and its float64 oracle",
          "integers that depend on rounding cannot be judged; derive them from integer inputs");
    }
    return noise;
  }
  const double rms = root_mean_square(oracle, *n);
  for (std::int64_t i = 0; i < *n; ++i) {
    const double got = element_as_double(reference.bytes.data(), reference.info.dtype, i);
    const double expected = element_as_double(oracle.bytes.data(), DType::kF64, i);
    if (!same_bits(got, expected)) noise.exact = false;
    const double error = distance(got, expected);
    if (!std::isfinite(error)) {
      return usage_error("output '" + noise.output + "' of the reference is " + std::to_string(got) +
                             " at element " + std::to_string(i) + " where float64 gives " +
                             std::to_string(expected),
                         "give the inputs a smaller scale, so that the type can hold the result");
    }
    noise.max_abs = std::max(noise.max_abs, error);
    if (error > 0) noise.relative = std::max(noise.relative, error / scale_of(expected, rms));
  }
  return noise;
}

OutputNoise merge_noise(const OutputNoise& a, const OutputNoise& b) {
  return {a.output, std::max(a.relative, b.relative), std::max(a.max_abs, b.max_abs), a.exact && b.exact};
}

std::string describe(const Comparison& comparison, const TensorInfo& output) {
  if (comparison.worst < 0) return output.name + " is empty";
  std::vector<std::int64_t> index(output.shape.size());
  std::int64_t rest = comparison.worst;
  for (std::size_t d = output.shape.size(); d-- > 0;) {
    index[d] = output.shape[d] == 0 ? 0 : rest % output.shape[d];
    rest = output.shape[d] == 0 ? 0 : rest / output.shape[d];
  }
  const auto number = [](double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", value);
    return std::string(text);
  };
  std::string out = output.name + (index.empty() ? "" : shape_text(index)) + " is " + number(comparison.got) +
                    ", should be " + number(comparison.expected);
  if (comparison.exact) {
    out += " bit for bit";
  } else {
    out += " (off by " + number(comparison.max_error) + ", allowed " + number(comparison.allowed) + ")";
  }
  if (comparison.n_wrong > 0) {
    out += "; " + with_commas(static_cast<unsigned long long>(comparison.n_wrong)) + " of " +
           with_commas(static_cast<unsigned long long>(comparison.n_compared)) + " elements are wrong";
  }
  if (comparison.n_unwritten > 0) {
    out +=
        ", " + with_commas(static_cast<unsigned long long>(comparison.n_unwritten)) + " were never written";
  }
  return out;
}

void poison(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = poison_byte(i);
}

}  // namespace echolo
