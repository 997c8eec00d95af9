#include "judge/scratch.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "work.";
constexpr auto kAbandoned = std::chrono::hours(12);

// What a killed process left behind goes when it is surely nobody's.
void remove_abandoned(const fs::path& parent) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(parent, code)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const auto changed = entry.last_write_time(code);
    if (!code && fs::file_time_type::clock::now() - changed > kAbandoned) fs::remove_all(entry.path(), code);
  }
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make(const std::string& parent) {
  std::error_code code;
  fs::create_directories(parent, code);
  if (code) return machine_error("cannot make the folder " + parent + ": " + code.message());
  remove_abandoned(parent);
  std::string path = (fs::path(parent) / (std::string(kPrefix) + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return machine_error("cannot make a folder in " + parent + ": " + std::strerror(errno),
                         errno == ENOSPC ? "free some disk space, or give another folder with --store" : "");
  }
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

Status ScratchFolder::keep_as(const std::string& target) {
  if (::rename(path_.c_str(), target.c_str()) == 0) {
    path_.clear();
    return {};
  }
  if (errno == EEXIST || errno == ENOTEMPTY) return {};
  return machine_error("cannot rename " + path_ + " to " + target + ": " + std::strerror(errno));
}

}  // namespace echolo::judge
