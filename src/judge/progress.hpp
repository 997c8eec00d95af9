// How long work tells a person where it is. Called from several threads; an implementation locks for itself.
#pragma once

#include <cstddef>
#include <string>

namespace echolo::judge {

class Progress {
 public:
  virtual ~Progress() = default;
  // A stage begins: "compile", "nvcc on ag_gemm TILE_M=64".
  virtual void stage(const std::string& /*name*/, const std::string& /*what*/) {}
  // Within a stage: `done` of `total`, and what was last finished.
  virtual void advance(std::size_t /*done*/, std::size_t /*total*/, const std::string& /*what*/) {}
  // A line worth keeping, such as one candidate's outcome.
  virtual void note(const std::string& /*line*/) {}
};

}  // namespace echolo::judge
