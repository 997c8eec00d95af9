// Compiles the programs of tests/runtime/programs with the project's nvcc and runs them on a virtual node.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/job.hpp"

namespace echolo::runtime::test {

// nvcc of the project's .venv; empty where there is none (the tests are then skipped).
std::string nvcc();
// Path of the compiled program (once a test run), or the compiler's words in the error.
Result<std::string> compiled(const std::string& source, bool shared_library = false);
// The same with the host compiler, for programs that use no CUDA.
Result<std::string> compiled_host(const std::string& source);
JobSpec program_job(const std::string& executable, int world, std::vector<std::string> arguments);
// The result without wall times, as JSON.
std::string without_seconds(const JobResult& result);
std::string render_all(const JobResult& result);
const vgpu::Finding* find(const JobResult& result, vgpu::FindingKind kind);
// The line of tests/runtime/programs/`source` that holds `text`; 0: none.
int line_of(const std::string& source, const std::string& text);

}  // namespace echolo::runtime::test

#define ECHOLO_NEED_NVCC() \
  if (echolo::runtime::test::nvcc().empty()) GTEST_SKIP() << "no CUDA compiler in .venv"
