// Random small litmus tests, always the same for the same seed.
#pragma once

#include <cstdint>
#include <string>

namespace echolo::litmus::testing {

// Two or three threads of two to four operations on two or three locations, of all strengths, scopes and
// proxies; every register and location is observed.
std::string random_litmus(std::uint64_t seed);

}  // namespace echolo::litmus::testing
