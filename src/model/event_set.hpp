// A set of events, small enough to copy by the thousand.
#pragma once

#include <bit>
#include <cstdint>

#include "model/event.hpp"

namespace echolo::model {

class EventSet {
 public:
  bool has(EventId event) const { return (word(event) >> (event & 63) & 1) != 0; }
  void add(EventId event) { word(event) |= std::uint64_t{1} << (event & 63); }
  void remove(EventId event) { word(event) &= ~(std::uint64_t{1} << (event & 63)); }
  bool empty() const { return (words_[0] | words_[1]) == 0; }
  int size() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }

  EventSet& operator|=(const EventSet& other) {
    words_[0] |= other.words_[0];
    words_[1] |= other.words_[1];
    return *this;
  }
  EventSet& operator&=(const EventSet& other) {
    words_[0] &= other.words_[0];
    words_[1] &= other.words_[1];
    return *this;
  }
  friend EventSet operator|(EventSet a, const EventSet& b) { return a |= b; }
  friend EventSet operator&(EventSet a, const EventSet& b) { return a &= b; }
  bool operator==(const EventSet&) const = default;
  bool intersects(const EventSet& other) const {
    return ((words_[0] & other.words_[0]) | (words_[1] & other.words_[1])) != 0;
  }

  // Calls f(event) for every member, lowest first.
  template <typename F>
  void each(F f) const {
    for (int w = 0; w < 2; ++w) {
      for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1) f(w * 64 + std::countr_zero(rest));
    }
  }

 private:
  static_assert(kMaxEvents == 128);
  std::uint64_t& word(EventId event) { return words_[event >> 6]; }
  const std::uint64_t& word(EventId event) const { return words_[event >> 6]; }

  std::uint64_t words_[2] = {0, 0};
};

}  // namespace echolo::model
