// Runs the real binary, as a person or a script would.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "base/text.hpp"

namespace echolo::cli_tests {

namespace fs = std::filesystem;

struct Ran {
  int code = -1;
  std::string out, err;
  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

struct How {
  std::map<std::string, std::string> env;
  std::string directory = ECHOLO_SOURCE_DIR;
  std::chrono::milliseconds interrupt_after{
      0};  // SIGINT to echolo alone, as a terminal would send it to its group
  int signal = SIGINT;
  rlim_t file_size = RLIM_INFINITY;
  std::vector<std::string> within;  // a command whose last arguments are echolo's
};

Ran echolo(std::vector<std::string> words, const How& how = {});

// A folder for one test, gone with it.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  std::string path(const std::string& name = "") const { return (fs::path(path_) / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// Folders that work in progress left behind in a store.
std::vector<std::string> leftovers(const std::string& store);

// A verdict's JSON without what may differ between two equal questions: how long stages took, and whether
// they came from a cache.
nlohmann::json without_times(nlohmann::json verdict);

// A candidate of all_reduce that only compiles: what it computes is wrong.
std::string idle_candidate(const std::string& statement_in_run = "");

}  // namespace echolo::cli_tests
