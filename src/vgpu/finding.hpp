// Findings: what the virtual node explains. One per fault, deduplicated by kind and pair of source places.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace echolo::vgpu {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

enum class FindingKind : std::uint8_t {
  kDataRace,
  kScopeTooNarrow,
  kMissingOrder,
  kSourceReuse,
  kWrongWait,
  kUninitialisedRead,
  kOutOfBounds,
  kMisaligned,
  kHostDereference,
  kDeadlock,
  kLivelock,
  kBarrierDivergence,
  kResidency,
  kCollectiveMismatch,
  kSymmetricMismatch,
  kStaleState,
  kEarlyExit,
  kNondeterministic,
  kLeak,
  kDeviceTrap,  // __trap, assert, or an instruction fault that a GPU would report as a launch failure
};
std::string_view name_of(FindingKind kind);  // "data-race"
std::string status_of(FindingKind kind);     // "data_race"; "crashed" for kDeviceTrap

struct Frame {       // one place in source, with the function it is in
  std::string file;  // as the compiler saw it; shortened for display by whoever prints
  int line = 0, column = 0;
  std::string function;  // demangled, without parameter types where that is unambiguous
};

struct Site {
  std::string role;  // "read", "write", "wait", "call", "barrier", "allocation", "host" ...
  int pe = -1;
  bool on_device = true;  // false: host code of the PE (block and thread mean nothing)
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
  Frame where;
  std::vector<Frame> inlined_at;  // innermost caller first
  int call = 0;                   // which call of candidate_run (1-based; 0: none)
  std::string kernel;             // demangled kernel name
  std::string waits_for;          // "signal[2] >= 3"; empty where this is no wait
  std::string holds;              // "2"
  // Further half sentences for the text form, separated by "; ". One that begins with a digit says who ("8
  // blocks") and stands for block and thread; the others end the line ("only PE 1 writes it (line 39)").
  std::string note;
};

struct FindingAddress {
  int pe = -1;  // -1: no address
  std::string
      object;  // "`buf`, 64 KiB from nvshmem_malloc at candidate.cu:12", "shared memory of block (0,0,0)"
  std::int64_t offset = 0;  // bytes from the object's start (may be negative or past the end)
};

struct Finding {
  FindingKind kind{};
  std::string message;      // "PE 1 reads 4 bytes past the end of `buf`"
  std::string why;          // the missing edge, the mechanism; may be empty
  std::string advice;       // what would mend it
  std::vector<Site> sites;  // the place at fault first
  FindingAddress address;
  std::uint64_t count = 1;
  std::string id;      // 16 hex digits; filled by FindingLog
  bool fatal = false;  // the run stopped here
};

// Collects findings, merging those of one kind whose sites name the same lines.
class FindingLog {
 public:
  // Returns the finding's index in all(). Sites count by role, file and line; where no line is known, by
  // function. The first sight's texts, threads and addresses are kept, counts add up.
  std::size_t add(Finding finding);
  // More sights of a finding that is already there, for those who know that nothing else about it is new.
  void add_count(std::size_t index, std::uint64_t more) { findings_[index].count += more; }
  bool has_fatal() const { return has_fatal_; }
  bool empty() const { return findings_.empty(); }
  const std::vector<Finding>& all() const { return findings_; }  // in order of first sight

 private:
  std::vector<Finding> findings_;
  std::map<std::string, std::size_t> by_key_;
  bool has_fatal_ = false;
};

void to_json(nlohmann::json& out, const Finding& finding);  // DESIGN §10's form, without "replay"
void from_json(const nlohmann::json& in, Finding& finding);

// How source lines are found for excerpts: file name as in a Frame -> text. Files that are not there print no
// excerpt.
struct RenderOptions {
  bool colour = false;
  std::map<std::string, std::string> sources;        // file name as in Frame::file -> whole text
  std::map<std::string, std::string> display_names;  // file name as in Frame::file -> name to print
  std::string
      occurrence;  // printed after the count: "first under seed 3, policy fair; again: echolo replay 7f3a"
};
// As a compiler would print it (DESIGN §6 shows the tone); ends with a newline.
std::string render(const Finding& finding, const RenderOptions& options);

}  // namespace echolo::vgpu
