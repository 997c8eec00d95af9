// Finds the PTX in the fat binary that nvcc embeds (layout as nvcc 13.2 writes it; see fatbin.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace echolo::runtime::pe {

struct FatbinPtx {
  std::string text;
  std::string source;      // the file name that nvcc noted, "a.cu"; may be empty
  std::uint32_t arch = 0;  // 90
};

struct FatbinContents {
  std::vector<FatbinPtx> ptx;
  int n_compressed = 0;  // PTX entries that can't be read (built without --no-compress)
  int n_native = 0;      // machine code, which the virtual node does not execute
  std::string error;     // not empty: malformed
};

// `data` is the container (magic 0xba55ed50), `n` the bytes that may be read.
FatbinContents parse_fatbin(const std::uint8_t* data, std::size_t n);
// The size that a container's header claims, header included; 0 where `data` (16 bytes at least) is none.
std::size_t fatbin_size(const std::uint8_t* data);

}  // namespace echolo::runtime::pe
