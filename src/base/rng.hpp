// A small seeded generator whose output is the same on every machine and standard library
// (SplitMix64; Steele, Lea, Flood, OOPSLA 2014). Never use <random>'s distributions where a run must repeat.
#pragma once

#include <cstdint>

namespace echolo {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n), n > 0 (Lemire's multiply-shift; the bias for n < 2^32 is below 2^-32).
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }
  // An independent stream for a named purpose.
  Rng fork(std::uint64_t salt) { return Rng(next() ^ (salt * 0xd6e8feb86659fd93ULL)); }

 private:
  __extension__ using Wide = unsigned __int128;  // not ISO C++, but in every compiler this builds with
  std::uint64_t state_;
};

}  // namespace echolo
