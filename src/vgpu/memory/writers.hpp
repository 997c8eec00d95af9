// Who wrote a word last: a bounded table, for the explanation of waits. A record is small; what the writes of
// one instruction in one launch share (source place, kernel, call, shape) is kept once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "vgpu/exec.hpp"
#include "vgpu/finding.hpp"

namespace echolo::vgpu {

class WriterTable {
 public:
  struct Shared {
    Site site;
    Dim3 grid_dim, block_dim;  // to make indices of linear ones; of device code
  };
  struct Record {
    std::uint64_t address = 0;  // of the bytes written; 0: none
    std::uint64_t value = 0;
    std::uint32_t shared = 0;  // index of what it shares
    std::uint32_t block = 0;   // linear
    std::uint32_t thread = 0;  // linear, in its block
    std::uint8_t bytes = 0;    // 1 .. 8
  };

  void put(const Record& record) {
    if (records_.empty()) records_.resize(kRecords);
    records_[slot_of(record.address)] = record;
  }
  const Record* find(std::uint64_t address) const {
    if (records_.empty()) return nullptr;
    const Record& record = records_[slot_of(address)];
    return record.address >> 3U == address >> 3U && record.address != 0 ? &record : nullptr;
  }
  const Shared& shared(const Record& record) const { return shared_[record.shared]; }

  // The same for a host thread: one for each place and call.
  std::uint32_t of_host(Site site) {
    std::string key = std::to_string(site.pe) + '\t' + std::to_string(site.call) + '\t' +
                      std::to_string(site.where.line) + '\t' + site.where.file + '\t' + site.where.function +
                      '\t' + site.role;
    const auto [at, fresh] = known_hosts_.try_emplace(std::move(key), 0);
    if (fresh) at->second = add({std::move(site), {0, 0, 0}, {0, 0, 0}});
    return at->second;
  }
  // The shared part of an instruction's writes in a launch; `make` makes it where there is none like it.
  template <typename Make>
  std::uint32_t of_instruction(const Grid& grid, const Inst& inst, Make make) {
    Recent& recent = recent_[(reinterpret_cast<std::uintptr_t>(&inst) / sizeof(Inst)) % kRecent];
    if (recent.inst == &inst && recent.pe == grid.pe && recent.launch_id == grid.launch_id)
      return recent.shared;
    const Key key{&inst, grid.pe, grid.call, grid.kernel, shape(grid.grid_dim), shape(grid.block_dim)};
    auto at = known_.find(key);
    if (at == known_.end()) at = known_.emplace(key, add({make(), grid.grid_dim, grid.block_dim})).first;
    recent = {&inst, grid.launch_id, grid.pe, at->second};
    return at->second;
  }

 private:
  std::uint32_t add(Shared shared) {
    shared_.push_back(std::move(shared));
    return static_cast<std::uint32_t>(shared_.size() - 1);
  }

  static constexpr std::size_t kRecords = 1U << 14U;
  static constexpr std::size_t kRecent = 64;
  using Shape = std::array<std::uint32_t, 3>;
  using Key = std::tuple<const Inst*, int, int, const ptx::Function*, Shape, Shape>;
  struct Recent {
    const Inst* inst = nullptr;
    std::uint64_t launch_id = 0;
    int pe = -1;
    std::uint32_t shared = 0;
  };

  static Shape shape(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }
  static std::size_t slot_of(std::uint64_t address) {
    return static_cast<std::size_t>(((address >> 3U) * 0x9e3779b97f4a7c15ULL) >> 50U);
  }

  std::vector<Record> records_;
  std::deque<Shared> shared_;
  std::map<Key, std::uint32_t> known_;
  std::map<std::string, std::uint32_t> known_hosts_;
  std::array<Recent, kRecent> recent_{};
};

}  // namespace echolo::vgpu
