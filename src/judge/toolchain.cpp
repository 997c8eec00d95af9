#include "judge/toolchain.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "problem/suite.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

bool is_program(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && ::access(path.c_str(), X_OK) == 0;
}

// Size and time of change tell a replaced file from the old one without reading it.
void add_stat(Sha256& hash, const fs::path& path) {
  struct stat info {};
  hash.field(path.string());
  if (::stat(path.c_str(), &info) != 0) return;
  hash.field(std::to_string(info.st_size) + "." + std::to_string(info.st_mtim.tv_sec) + "." +
             std::to_string(info.st_mtim.tv_nsec));
}

void add_contents(Sha256& hash, const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(folder, code)) {
    if (entry.is_regular_file(code)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const Result<std::string> text = read_file(file.string());
    hash.field(file.filename().string()).field(text ? *text : "");
  }
}

}  // namespace

Result<std::string> find_nvcc() {
  const char* hint = "./run.sh installs it into .venv; or set ECHOLO_NVCC to an nvcc of CUDA 13";
  if (const char* given = std::getenv("ECHOLO_NVCC"); given != nullptr && *given != '\0') {
    std::error_code code;
    if (is_program(given)) return fs::canonical(given, code).string();
    return machine_error(std::string("ECHOLO_NVCC names no program: ") + given, hint);
  }
  if (Result<std::string> home = echolo_home(); home) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(fs::path(*home) / ".venv" / "lib", code)) {
      const fs::path nvcc = entry.path() / "site-packages" / "nvidia" / "cu13" / "bin" / "nvcc";
      if (is_program(nvcc)) return fs::canonical(nvcc, code).string();
    }
  }
  if (const char* path = std::getenv("PATH"); path != nullptr) {
    for (const std::string& folder : split(path, ':')) {
      std::error_code code;
      if (!folder.empty() && is_program(fs::path(folder) / "nvcc")) {
        return fs::canonical(fs::path(folder) / "nvcc", code).string();
      }
    }
  }
  return machine_error("the CUDA compiler nvcc is not there", hint);
}

Result<std::string> binary_directory() {
  if (const char* given = std::getenv("ECHOLO_BIN_DIR"); given != nullptr && *given != '\0')
    return std::string(given);
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  if (code) return machine_error("cannot tell where this program is: " + code.message());
  // Tests and benchmarks lie one folder below the binaries.
  for (const fs::path& folder : {self.parent_path(), self.parent_path().parent_path()}) {
    if (fs::exists(folder / "echolo-node", code)) return folder.string();
  }
  return self.parent_path().string();
}

Result<Toolchain> find_toolchain() {
  Toolchain out;
  Result<std::string> nvcc = find_nvcc();
  if (!nvcc) return nvcc.error();
  out.nvcc = *nvcc;
  out.root = fs::path(out.nvcc).parent_path().parent_path().string();
  out.ptxas = (fs::path(out.root) / "bin" / "ptxas").string();
  if (!is_program(out.ptxas)) {
    return machine_error("there is no ptxas beside " + out.nvcc,
                         "the CUDA compiler is incomplete: ./run.sh mends it");
  }
  Result<std::string> home = echolo_home();
  if (!home) return home.error();
  out.include_dir = (fs::path(*home) / "include").string();
  Result<std::string> binaries = binary_directory();
  if (!binaries) return binaries.error();
  std::error_code code;
  out.library_dir = (fs::path(*binaries) / "lib" / "pe").string();
  for (const char* library : {"libcudart.so", "libnvshmem_host.so"}) {
    if (!fs::exists(fs::path(out.library_dir) / library, code)) {
      return machine_error(out.library_dir + " has no " + library,
                           "build it: ./run.sh, or cmake --build build");
    }
  }
  out.library_dir = fs::canonical(out.library_dir, code).string();
  Sha256 hash;
  add_stat(hash, out.nvcc);
  add_stat(hash, out.ptxas);
  for (const char* library : {"libcudart.so", "libnvshmem_host.so"}) {
    add_stat(hash, fs::path(out.library_dir) / library);
  }
  add_contents(hash, out.include_dir);
  out.fingerprint = hash.hex();
  return out;
}

}  // namespace echolo::judge
