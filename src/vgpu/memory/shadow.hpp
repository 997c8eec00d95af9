// Written marks: one bit a byte, bit (i & 7) of byte (i >> 3) for the byte at index i. Memory that was never
// written reads as a poison pattern, which is put in place only when somebody reads it: so untouched memory
// costs nothing.
#pragma once

#include <cstdint>
#include <cstring>

namespace echolo::vgpu {

// Every f32, f16, bf16 and f64 of it is a NaN; as an integer it is negative and odd.
inline std::uint8_t poison_byte(std::uint64_t index) { return (index & 1U) != 0 ? 0xff : 0xfb; }

namespace shadow {

inline std::uint8_t head_mask(std::uint64_t index) {
  return static_cast<std::uint8_t>(0xffU << (index & 7U));
}
inline std::uint8_t tail_mask(std::uint64_t end) {
  return static_cast<std::uint8_t>(0xffU >> (8U - (end & 7U)));
}

// All `n` bits from `index` on set? n > 0.
inline bool all_set(const std::uint8_t* marks, std::uint64_t index, std::uint64_t n) {
  const std::uint64_t end = index + n;
  const std::uint8_t* at = marks + (index >> 3U);
  const std::uint8_t* last = marks + (end >> 3U);
  if (at == last) {
    const std::uint8_t mask = head_mask(index) & tail_mask(end);
    return (*at & mask) == mask;
  }
  if ((index & 7U) != 0) {
    const std::uint8_t mask = head_mask(index);
    if ((*at & mask) != mask) return false;
    ++at;
  }
  while (last - at >= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    if (word != ~std::uint64_t{0}) return false;
    at += 8;
  }
  for (; at < last; ++at) {
    if (*at != 0xff) return false;
  }
  if ((end & 7U) == 0) return true;
  const std::uint8_t mask = tail_mask(end);
  return (*last & mask) == mask;
}

// Sets (or clears) `n` bits from `index` on. n > 0.
inline void assign(std::uint8_t* marks, std::uint64_t index, std::uint64_t n, bool value) {
  const std::uint64_t end = index + n;
  std::uint8_t* at = marks + (index >> 3U);
  std::uint8_t* last = marks + (end >> 3U);
  const auto put = [value](std::uint8_t* byte, std::uint8_t mask) {
    *byte = static_cast<std::uint8_t>(value ? *byte | mask : *byte & ~mask);
  };
  if (at == last) {
    put(at, head_mask(index) & tail_mask(end));
    return;
  }
  if ((index & 7U) != 0) put(at++, head_mask(index));
  if (last > at) std::memset(at, value ? 0xff : 0, static_cast<std::size_t>(last - at));
  if ((end & 7U) != 0) put(last, tail_mask(end));
}

inline bool test(const std::uint8_t* marks, std::uint64_t index) {
  return ((marks[index >> 3U] >> (index & 7U)) & 1U) != 0;
}

// Are the marks of `n` bytes at each of 32 indices all set? Indices are multiples of n, a power of two of at
// most 32.
template <unsigned n>
inline bool all_set_at(const std::uint8_t* marks, const std::uint64_t* indices) {
  std::uint32_t missing = 0;
  for (int i = 0; i < 32; ++i) {
    if constexpr (n >= 8) {
      std::uint32_t word = n == 32 ? 0 : ~std::uint32_t{0} << (n / 8 * 8 % 32);
      std::uint8_t bytes[n / 8];
      std::memcpy(bytes, marks + (indices[i] >> 3U), n / 8);
      std::uint32_t found = 0;
      std::memcpy(&found, bytes, n / 8);
      missing |= ~(found | word);
    } else {
      missing |=
          (static_cast<std::uint32_t>(~marks[indices[i] >> 3U]) >> (indices[i] & 7U)) & ((1U << n) - 1U);
    }
  }
  return missing == 0;
}

inline bool all_set_at(const std::uint8_t* marks, const std::uint64_t* indices, unsigned n, bool aligned) {
  if (aligned) {
    switch (n) {
      case 1:
        return all_set_at<1>(marks, indices);
      case 2:
        return all_set_at<2>(marks, indices);
      case 4:
        return all_set_at<4>(marks, indices);
      case 8:
        return all_set_at<8>(marks, indices);
      case 16:
        return all_set_at<16>(marks, indices);
      default:
        break;
    }
  }
  for (int i = 0; i < 32; ++i) {
    if (!all_set(marks, indices[i], n)) return false;
  }
  return true;
}

// Carries `n` marks from one place to another.
inline void copy(std::uint8_t* to, std::uint64_t to_index, const std::uint8_t* from, std::uint64_t from_index,
                 std::uint64_t n) {
  if (all_set(from, from_index, n)) {
    assign(to, to_index, n, true);
    return;
  }
  const bool backwards = to == from && to_index > from_index;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = backwards ? n - 1 - i : i;
    assign(to, to_index + at, 1, test(from, from_index + at));
  }
}

// Writes the poison pattern into those of `n` bytes that are not marked. bytes[i] has mark index + i.
inline void poison_unwritten(std::uint8_t* bytes, const std::uint8_t* marks, std::uint64_t index,
                             std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    if (((index + i) & 7U) == 0 && n - i >= 8 && marks[(index + i) >> 3U] == 0xff) {
      i += 7;
    } else if (!test(marks, index + i)) {
      bytes[i] = poison_byte(index + i);
    }
  }
}

}  // namespace shadow
}  // namespace echolo::vgpu
