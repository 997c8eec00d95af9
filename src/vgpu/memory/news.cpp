// Which changes of memory are new, for telling a livelock from work: a program that only ever puts back
// values that were there before goes round in circles.
#include "vgpu/memory/memory.hpp"
#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::size_t kBits = std::size_t{1} << 22U;
constexpr std::size_t kPlaces = std::size_t{1} << 16U;
// New values at one place (an aligned 8-byte word) that count as news. A counter that nobody stops has ever
// new values and still leads nowhere; work writes to many places.
constexpr std::uint16_t kNewsOfPlace = 16'384;
constexpr std::size_t kFull = kBits / 4;  // beyond that, too many would be taken for known: begin anew

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25ULL;
  return hash ^ (hash >> 29U);
}

}  // namespace

void Memory::watch_news(bool on) {
  watches_news_ = on;
  state_->seen_values.assign(on ? kBits : 0, false);
  state_->n_seen_values = 0;
  state_->news_of_place.assign(on ? kPlaces : 0, 0);
}

bool Memory::is_news(const std::uint8_t* at, std::size_t n) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(at);
  for (std::size_t i = 0; i < n; ++i) hash = mix(hash, at[i]);
  const std::size_t bit = hash % kBits;
  if (state_->seen_values[bit]) return false;
  if (++state_->n_seen_values > kFull) {
    state_->seen_values.assign(kBits, false);
    state_->n_seen_values = 0;
  }
  state_->seen_values[bit] = true;
  const std::uint64_t place = mix(0, reinterpret_cast<std::uintptr_t>(at) / 8);
  std::uint16_t& count = state_->news_of_place[place % kPlaces];
  if (count >= kNewsOfPlace) return false;
  ++count;
  return true;
}

}  // namespace echolo::vgpu
