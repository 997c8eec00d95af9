#include "golden_vectors.hpp"

#include <memory>

#include "alu_harness.hpp"

namespace echolo::vgpu::golden_vectors {

using alu_test::Prepared;
using alu_test::Registers;

std::size_t bytes_of(const std::string& name) {
  const int bits = golden::register_bits(name);
  return bits == 1 ? 1 : static_cast<std::size_t>(bits / 8);
}

std::size_t result_bytes(const golden::Case& c) {
  std::size_t bytes = 0;
  for (const std::string& name : c.destinations) bytes += bytes_of(name) * golden::kThreads;
  return bytes;
}

Run run(const std::string& form) {
  Run out;
  const golden::Case c = golden::make_case(form);
  std::vector<std::unique_ptr<Prepared>> instructions;
  for (const std::string* text : {&c.before, &c.form, &c.after}) {
    if (text->empty()) continue;
    instructions.push_back(std::make_unique<Prepared>(*text));
    if (!instructions.back()->ok()) {
      out.error = instructions.back()->error();
      return out;
    }
  }
  out.bytes.resize(result_bytes(c));
  for (int warp = 0; warp < golden::kThreads / kWarpSize; ++warp) {
    Registers registers;
    for (std::size_t s = 0; s < c.sources.size(); ++s) {
      for (int lane = 0; lane < kWarpSize; ++lane) {
        const auto value = golden::make_operand(form, c.sources[s], s, warp * kWarpSize + lane);
        registers.set(c.sources[s].name, lane, value[0], value[1]);
      }
    }
    for (const auto& instruction : instructions) instruction->run(registers);
    std::size_t at = 0;
    for (const std::string& name : c.destinations) {
      const std::size_t size = bytes_of(name);
      for (int lane = 0; lane < kWarpSize; ++lane) {
        const std::uint64_t value = registers.get(name, lane);
        std::uint8_t* to = out.bytes.data() + at + static_cast<std::size_t>(warp * kWarpSize + lane) * size;
        std::memcpy(to, &value, std::min<std::size_t>(size, 8));
        if (size == 16) {
          const std::uint64_t high = registers.get_high(name, lane);
          std::memcpy(to + 8, &high, 8);
        }
      }
      at += size * golden::kThreads;
    }
  }
  return out;
}

}  // namespace echolo::vgpu::golden_vectors
