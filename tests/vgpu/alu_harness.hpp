// Runs single PTX instructions on a warp's registers through the parser and plan_alu, as vgpu/core would.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptx/module.hpp"
#include "vgpu/alu/alu.hpp"
#include "vgpu/exec.hpp"

namespace echolo::vgpu::alu_test {

// Register names: %p0-7, %rs0-15 (16 bit), %r0-31, %f0-7 (32 bit), %rd0-23, %fd0-7 (64 bit), %q0-3 (128 bit).
struct Registers {
  Registers();
  std::uint64_t get(const std::string& name, int lane) const;       // predicates: 0 or 1
  std::uint64_t get_high(const std::string& name, int lane) const;  // upper half of 128 bits
  void set(const std::string& name, int lane, std::uint64_t value, std::uint64_t high = 0);

  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  std::vector<Line> storage;
  std::uint32_t carry = 0;
  std::uint8_t* bytes() { return storage.data()->bytes; }
  const std::uint8_t* bytes() const { return storage.data()->bytes; }
};

// One planned instruction.
class Prepared {
 public:
  explicit Prepared(const std::string& instruction);
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  const Plan& plan() const { return plan_; }
  void run(Registers& registers, std::uint32_t mask = kAllLanes) const;  // full lanes use alu_full

 private:
  ptx::Module module_;
  Plan plan_;
  std::string error_;
  std::vector<Slot> slots_;
  std::vector<Registers::Line> pool_;
};

// Values that break things, then a stream of random ones that often share digits with each other.
const std::vector<std::uint64_t>& edge_values(int bits, bool floating);
class Values {
 public:
  Values(int bits, bool floating, std::uint64_t seed) : bits_(bits), floating_(floating), state_(seed) {}
  std::uint64_t next();
  std::uint64_t random();

 private:
  int bits_;
  bool floating_;
  std::uint64_t state_;
};

inline float as_f32(std::uint64_t bits) {
  const auto word = static_cast<std::uint32_t>(bits);
  float x = 0;
  std::memcpy(&x, &word, 4);
  return x;
}
inline double as_f64(std::uint64_t bits) {
  double x = 0;
  std::memcpy(&x, &bits, 8);
  return x;
}
inline std::uint64_t bits_of(float x) {
  std::uint32_t word = 0;
  std::memcpy(&word, &x, 4);
  return word;
}
inline std::uint64_t bits_of(double x) {
  std::uint64_t word = 0;
  std::memcpy(&word, &x, 8);
  return word;
}

}  // namespace echolo::vgpu::alu_test
