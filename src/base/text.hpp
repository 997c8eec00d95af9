// Small text helpers that several rooms need.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace echolo {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
// The candidates nearest to `word` by edit distance, best first, at most `limit`; none that are not alike at
// all.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates,
                                 std::size_t limit = 3);
// "did you mean 'a' or 'b'?", or empty when nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);
// 65536 -> "64 KiB", 4164 -> "4,164 bytes".
std::string human_bytes(unsigned long long n_bytes);
// 1234567 -> "1,234,567".
std::string with_commas(unsigned long long n);
// Replaces terminal control sequences and non-printing characters so that untrusted text can be shown.
std::string printable(std::string_view text);

// As one word for a shell: itself where nothing in it means anything there, else in single quotes.
std::string shell_word(std::string_view text);

Result<std::string> read_file(const std::string& path);
// Writes beside the target and renames, so that no reader ever sees half a file.
Status write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace echolo
