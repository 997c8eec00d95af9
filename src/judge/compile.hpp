// The second stage: nvcc in a sandbox. What comes out is a library (or program) for the virtual node, the
// registers each kernel needs, and the gates that only the compiler's output can answer. Cached by the
// content of everything that goes in.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/library.hpp"
#include "judge/screen.hpp"
#include "judge/toolchain.hpp"

namespace echolo::judge {

// The name a source has inside the sandbox, and so in line information: user_path() leads back.
inline constexpr const char* kSandboxSource = "candidate.cu";

struct CompileRequest {
  SourceKind kind = SourceKind::kCandidate;
  std::string path;  // as the user gave it; stands in messages
  std::string text;
  Knobs knobs;
  std::string folder;           // kProgram: its folder, for includes
  std::string cache_directory;  // of the store
  std::chrono::milliseconds timeout{120'000};
};

struct CompileResult {
  std::string status;       // "ok", "compile_error", "refused"
  std::string log;          // the compiler's output with the user's lines, printable
  std::string output;       // path of candidate.so or of the program
  std::vector<Gate> gates;  // "host_code", "libraries"
  std::map<std::string, std::uint32_t> register_counts;  // kernel (mangled) -> registers a thread
  bool cached = false;
};

// Errors: kMachine (no compiler, no sandbox, disk full), kInterrupted. What is wrong with the source is a
// status.
Result<CompileResult> compile(const CompileRequest& request, const Toolchain& toolchain);

// A file name from line information -> what the user called it.
std::string user_path(const std::string& file, const CompileRequest& request);

// Compiler output with sandbox paths made the user's and undefined references explained.
std::string explain_log(const std::string& log, const CompileRequest& request, const std::string& ptx);

// Registers of each entry function, as `ptxas -v` prints them.
std::map<std::string, std::uint32_t> read_register_counts(const std::string& ptxas_output);

}  // namespace echolo::judge
