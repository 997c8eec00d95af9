// The first stage: gates that a source passes before anything is compiled. Each gate stands alone, has a name
// and says what it saw. They decide on tokens (judge/tokens.hpp), so comments, strings and line splices
// deceive nobody; where text alone cannot tell, the compile stage looks at what the compiler made
// (judge/compile.hpp).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace echolo::judge {

inline constexpr std::size_t kMaxSourceBytes = 1U << 20U;

struct Gate {
  std::string name;
  std::string result;  // "passed", "refused", "not_applicable", "overridden"
  std::string
      evidence;  // "candidate.cu:3:10: <sys/socket.h> is not among the headers that a candidate may include"
};
void to_json(nlohmann::json& out, const Gate& gate);
void from_json(const nlohmann::json& in, Gate& gate);

enum class SourceKind {
  kCandidate,  // the candidate interface, nothing else
  kProgram,    // a whole program with `main`: also includes of its own folder; only sandboxed otherwise
};

// `name` stands in the evidence. Always the same gates in the same order.
std::vector<Gate> screen(std::string_view text, const std::string& name, SourceKind kind);

// The first gate that refused, or null.
const Gate* refusal(const std::vector<Gate>& gates);

// Whether a candidate may include <header>: NVSHMEM's, the candidate interface, CUDA's and the standard ones.
bool header_allowed(std::string_view header);

}  // namespace echolo::judge
