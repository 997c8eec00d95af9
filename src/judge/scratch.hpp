// A folder for one piece of work, removed with its contents when the work is over, however it ends.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace echolo::judge {

class ScratchFolder {
 public:
  // Made inside `parent`, which is made too. Error (kMachine).
  static Result<ScratchFolder> make(const std::string& parent);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }
  // Gives the folder the name `target`, for good. Where another process was quicker, its folder stands and
  // ours goes.
  Status keep_as(const std::string& target);

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace echolo::judge
