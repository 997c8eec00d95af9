// Who wrote a word last: a bounded table, for the explanation of waits. A record is small; what all writes of
// one instruction share (source place, kernel, call) is kept once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "vgpu/finding.hpp"

namespace echolo::vgpu {

class WriterTable {
 public:
  struct Record {
    std::uint64_t address = 0;  // of the bytes written; 0: none
    std::uint64_t value = 0;
    std::shared_ptr<const Site> site;
    Dim3 block{0, 0, 0}, thread{0, 0, 0};
    std::uint8_t bytes = 0;
  };

  void put(Record record) {
    if (records_.empty()) records_.resize(kRecords);
    records_[slot_of(record.address)] = std::move(record);
  }
  const Record* find(std::uint64_t address) const {
    if (records_.empty()) return nullptr;
    const Record& record = records_[slot_of(address)];
    return record.address >> 3U == address >> 3U && record.address != 0 ? &record : nullptr;
  }

 private:
  static constexpr std::size_t kRecords = 1U << 14U;
  static std::size_t slot_of(std::uint64_t address) {
    return static_cast<std::size_t>(((address >> 3U) * 0x9e3779b97f4a7c15ULL) >> 50U);
  }
  std::vector<Record> records_;
};

}  // namespace echolo::vgpu
