// libFuzzer target: any text either is a litmus test or gives an error with a message and a line; what parses
// can be traced and explored for a moment without a fault. Run: build-fuzz/fuzz_litmus_parser
// fuzz/corpus/litmus -dict=fuzz/litmus.dict -max_total_time=120 (see fuzz/CMakeLists.txt).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "litmus/explore.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace echolo::litmus;
  const auto program = parse_litmus(std::string(reinterpret_cast<const char*>(data), size), "fuzz.litmus");
  if (!program.ok()) {
    require(!program.error().message.empty() && program.error().line > 0);
    return 0;
  }
  for (const Thread& thread : program->threads) {
    require(thread.registers.size() == thread.initial.size());
    for (const Instruction& each : thread.code) {
      require(each.address < static_cast<int>(program->addresses.size()));
      require(each.target <= static_cast<int>(thread.code.size()));
      require(each.destination < static_cast<int>(thread.registers.size()));
    }
  }
  ExploreLimits limits;
  limits.seconds = 0.02;
  limits.trace.iterations = 2;
  const Answer answer = explore(*program, limits);
  for (const auto& [values, count] : answer.outcomes) require(values.size() == program->observed.size());
  return 0;
}
