// SHA-256 (FIPS 180-4) as lower-case hex. Content hashes name artifacts, candidates and caches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace echolo {

class Sha256 {
 public:
  Sha256();
  Sha256& update(std::string_view bytes);
  // Length-prefixed, so that ("ab","c") and ("a","bc") differ.
  Sha256& field(std::string_view bytes);
  std::string hex();  // finishes the hash; 64 characters

 private:
  void block(const unsigned char* bytes);
  std::uint32_t state_[8];
  unsigned char pending_[64];
  std::size_t n_pending_ = 0;
  std::uint64_t n_bytes_ = 0;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace echolo
