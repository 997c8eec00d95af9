// Inner parts of the reference room: how the Python side is started, and the cache's names.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "reference/reference.hpp"

namespace echolo {

struct PackageVersions {
  std::string python, torch, safetensors, numpy;
  std::string text() const { return python + " " + torch + " " + safetensors + " " + numpy; }
};

// Of the packages that decide what a reference computes; asked once a process. Error (kMachine): one is
// missing.
Result<PackageVersions> package_versions(const std::string& python);

// Runs `script` of python/echolo/ with `request` on its standard input and reads the answer it leaves at
// request["result"]. Errors: the answer's own, with its file and line; kMachine where there is no answer.
// `on_tick` is called while it runs, at least every 50 ms; false ends it with kInterrupted.
Result<nlohmann::json> run_python(const std::string& script, const nlohmann::json& request,
                                  std::chrono::milliseconds limit, const std::function<bool()>& on_tick = {});

// Hashes whatever decides the outcome of a case but for the case itself.
Result<std::string> problem_hash(const Problem& problem, const PackageVersions& versions);

// With strict_oracle, floating outputs of float64 inputs must themselves be float64 (lint).
Result<ReferenceRun> run_reference(const Problem& problem, const ReferenceRequest& request,
                                   bool strict_oracle, const OnCase& on_case);

// A folder that is removed with everything in it when this goes out of scope. Its name tells whose it is, and
// what processes that are no more have left behind is removed when the next one is made.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const std::string& parent);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace echolo
