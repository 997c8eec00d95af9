// How far a candidate's output may be from the oracle (docs/architecture.md; the rule is measured, not
// guessed).
//
// Noise of an output is the in-type reference's own error against the float64 oracle, relative to each
// element's size but never to less than the output's root mean square:   noise = max_i |ref_i - oracle_i| /
// max(rms, |oracle_i|). An element passes where   |out_i - oracle_i| <= max(k * noise, floor(dtype)) *
// max(rms, |oracle_i|). Where the reference equals the oracle everywhere on every rank (copies, integers),
// outputs match bit for bit. NaN matches NaN, an infinity the same infinity, and nothing else matches either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "problem/dtype.hpp"
#include "problem/safetensors.hpp"

namespace echolo {

inline constexpr double kToleranceFactor = 4.0;  // k

// The least relative error that is always allowed: twice the type's unit roundoff (f64: 2^-44, as no wider
// oracle tells its noise, and outputs in f64 are never compared bit for bit); 0 for integers.
double tolerance_floor(DType dtype);

// What problem.toml may say: only tighter than the above.
struct ToleranceSpec {
  double k = kToleranceFactor;
  double floor = -1;  // relative; negative: the dtype's
  bool exact = false;
};

// Measured over all ranks of one case.
struct OutputNoise {
  std::string output;
  double relative = 0;  // as above
  double max_abs = 0;   // max_i |ref_i - oracle_i|, in the output's own unit
  bool exact = false;   // the reference equals the oracle bit for bit on every rank
};

struct Comparison {
  bool ok = false;
  bool exact = false;       // compared bit for bit
  double max_error = 0;     // |out - oracle| of the worst element; infinity where one side is NaN or infinite
  double allowed = 0;       // allowed for that element, same unit
  std::int64_t worst = -1;  // its flat index: the largest error relative to what is allowed; -1 when empty
  double got = 0;           // its value
  double expected = 0;
  std::int64_t n_wrong = 0;      // elements beyond what is allowed
  std::int64_t n_unwritten = 0;  // elements that still hold poison() where the oracle doesn't ask for that
  std::int64_t first_unwritten = -1;
  std::int64_t n_compared = 0;
};

// Compares one rank's output with its oracle (f64 for floating outputs; the output's own type for integers
// and bool). `n_rows` bounds the comparison to the first n_rows of dimension 0 (data-dependent outputs);
// negative: all. Errors (kMachine): shapes or types that do not belong together.
Result<Comparison> compare(const TensorView& out, const TensorView& oracle, const OutputNoise& noise,
                           const ToleranceSpec& tolerance = {}, std::int64_t n_rows = -1);

// The noise of one rank's in-type reference output; combine ranks with merge_noise. Error (kUsage): the
// reference is NaN or infinite where the oracle is not, so its error says nothing.
Result<OutputNoise> measure_noise(const TensorView& reference, const TensorView& oracle,
                                  std::int64_t n_rows = -1);
OutputNoise merge_noise(const OutputNoise& a, const OutputNoise& b);

// "c[3, 17] is 1.5, should be 2.25 (off by 0.75, allowed 0.01); 12 of 1,024 elements are wrong, 12 were never
// written".
std::string describe(const Comparison& comparison, const TensorInfo& output);

// Fills an output buffer with what the virtual node's memory holds before anybody writes it. compare() counts
// elements that still hold it.
void poison(std::span<std::byte> bytes);

}  // namespace echolo
