#include "base/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

namespace echolo {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != parts.data()) out += separator;
    out += part;
  }
  return out;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates,
                                 std::size_t limit) {
  std::vector<std::pair<std::size_t, std::string>> scored;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool contains = word.size() >= 3 && candidate.find(word) != std::string::npos;
    if (contains || distance <= std::max<std::size_t>(2, word.size() / 3))
      scored.emplace_back(distance, candidate);
  }
  std::sort(scored.begin(), scored.end());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(limit, scored.size()); ++i) out.push_back(scored[i].second);
  return out;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  std::vector<std::string> near = nearest(word, candidates);
  if (near.empty()) return {};
  for (std::string& name : near) name = "'" + name + "'";
  return "did you mean " + join(near, " or ") + "?";
}

std::string with_commas(unsigned long long n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string human_bytes(unsigned long long n_bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (n_bytes < 1024 || n_bytes % 1024 != 0)
    return with_commas(n_bytes) + (n_bytes == 1 ? " byte" : " bytes");
  int unit = 0;
  n_bytes /= 1024;
  while (unit < 3 && n_bytes >= 1024 && n_bytes % 1024 == 0) {
    n_bytes /= 1024;
    ++unit;
  }
  return with_commas(n_bytes) + " " + kUnits[unit];
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t' || (byte >= 0x20 && byte != 0x7f)) {
      out += c;
    } else {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", byte);
      out += hex;
    }
  }
  return out;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return usage_error("cannot read " + path + ": " + std::strerror(errno));
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (in.bad() || bytes.fail()) {
    // An empty file leaves failbit set on the destination; tell it apart from a read error.
    if (in.bad()) return usage_error("cannot read " + path + ": " + std::strerror(errno));
  }
  return std::move(bytes).str();
}

Status write_file_atomically(const std::string& path, std::string_view bytes) {
  // The counter keeps apart two threads that write the same file.
  static std::atomic<unsigned> n_scratch{0};
  const std::string scratch =
      path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(n_scratch.fetch_add(1));
  const int fd = ::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto fail = [&](const char* what) {
    const int code = errno;
    if (fd >= 0) ::close(fd);
    ::unlink(scratch.c_str());
    return machine_error(std::string("cannot ") + what + " " + path + ": " + std::strerror(code),
                         code == ENOSPC ? "free some disk space, or give another folder with --store" : "");
  };
  if (fd < 0) return fail("create");
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::close(fd) != 0) {
    ::unlink(scratch.c_str());
    return machine_error("cannot write " + path + ": " + std::strerror(errno));
  }
  if (::rename(scratch.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(scratch.c_str());
    return machine_error("cannot rename to " + path + ": " + std::strerror(code));
  }
  return {};
}

}  // namespace echolo
