// The compiler and the libraries that candidates are built with.
#pragma once

#include <string>

#include "base/result.hpp"

namespace echolo::judge {

struct Toolchain {
  std::string nvcc;  // real path
  std::string root;  // the toolkit's folder: bin/, include/, nvvm/
  std::string ptxas;
  std::string include_dir;  // ours: echolo/, nvshmem/
  std::string library_dir;  // libcudart and libnvshmem_host of the virtual node
  std::string fingerprint;  // changes when any of the above does
};

// nvcc is ECHOLO_NVCC where set, else the one of .venv, else the one on PATH. Errors (kMachine): there is
// none, with the command that mends it.
Result<std::string> find_nvcc();
Result<Toolchain> find_toolchain();

// The folder of this installation's binaries: ECHOLO_BIN_DIR where set, else the one this executable is in.
Result<std::string> binary_directory();

}  // namespace echolo::judge
