// A candidate (dialect cuda): one source and its knobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/library.hpp"

namespace echolo::judge {

struct Candidate {
  std::string path;  // of the source, as messages show it
  std::string text;
  Knobs knobs;
  std::string label;  // for people: "ag_gemm TILE_M=64 TILE_N=32", or the path
  std::string hash;   // "sha256:..." over text and knobs
  std::optional<KernelLibrary> library;
};

// `what` is a .cu file, a kernel directory, or the name of one in the kernel library. `knobs` are NAME=VALUE.
// Errors (kUsage): not there (near names offered), not UTF-8 text, unknown knob.
Result<Candidate> load_candidate(const std::string& what, const std::vector<std::string>& knobs);
// The same with a text that need not stand anywhere any more; `path` and `label` are for messages.
Result<Candidate> text_candidate(const std::string& text, const std::string& path, const std::string& label,
                                 const std::vector<std::string>& knobs);
Result<Candidate> library_candidate(const KernelLibrary& library, const Knobs& knobs);

}  // namespace echolo::judge
