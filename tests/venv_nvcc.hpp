// The CUDA compiler for tests of rooms below judge/, which has its own way of finding one.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace echolo::test {

// Of .venv in the source tree; empty where there is none.
inline std::string venv_nvcc() {
  std::error_code code;
  const std::filesystem::path lib = std::filesystem::path(ECHOLO_SOURCE_DIR) / ".venv" / "lib";
  for (const auto& python : std::filesystem::directory_iterator(lib, code)) {
    const std::filesystem::path nvcc = python.path() / "site-packages" / "nvidia" / "cu13" / "bin" / "nvcc";
    if (std::filesystem::exists(nvcc, code)) return nvcc.string();
  }
  return {};
}

}  // namespace echolo::test
