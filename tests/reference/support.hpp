// A scratch folder, problems written on the fly, and one cache for the whole test binary.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "problem/problem.hpp"
#include "reference/reference.hpp"

namespace echolo {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "echolo-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const {
    return (std::filesystem::path(path_) / name).string();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

inline const std::string& test_cache() {
  static const Folder folder;
  return folder.path();
}

inline constexpr const char* kSmallToml = R"(name = "tiny"
summary = "A problem of a test."
family = "test"
worlds = [2]
dtypes = ["f32"]
[params]
N = 8
[sizes]
smoke = { N = 8 }
small = { N = 16 }
[[inputs]]
name = "x"
shape = ["N"]
[[outputs]]
name = "y"
shape = ["N"]
)";

}  // namespace echolo
