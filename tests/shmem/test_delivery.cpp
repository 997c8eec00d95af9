// When operations are done: what fence, quiet and barriers put in order, under every timing and many seeds.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "shmem/fabric.hpp"

namespace echolo::shmem {
namespace {

using vgpu::CallOutcome;

class Wire {
 public:
  explicit Wire(Timing timing, std::uint64_t seed = 1, const char* fabric = "nvlink", int n_pes = 2)
      : n_pes_(n_pes), fabric_(FabricConfig{n_pes, fabric, timing, seed}) {
    vgpu::MemoryConfig config;
    config.n_pes = n_pes;
    memory_ = std::move(vgpu::Memory::create(config, findings_)).value();
    fabric_.attach(*memory_, findings_);
    const std::vector<std::string> where(static_cast<std::size_t>(n_pes));
    box_ = *memory_->allocate_symmetric(kBytes, 512, "nvshmem_malloc", where);
    vgpu::Memory::Accessor who;
    for (const std::uint64_t at : box_) EXPECT_TRUE(memory_->fill(at, 0, kBytes, who));
  }

  CallOutcome attempt(int pe, const std::string& name, std::vector<std::uint64_t> arguments,
                      bool on_stream = false) {
    Fabric::HostCall call;
    call.name = name;
    call.pe = pe;
    call.arguments = std::move(arguments);
    call.on_stream = on_stream;
    call.site.pe = pe;
    call.site.on_device = false;
    return fabric_.host_call(call);
  }
  void call(int pe, const std::string& name, std::vector<std::uint64_t> arguments, bool on_stream = false) {
    EXPECT_EQ(attempt(pe, name, std::move(arguments), on_stream), CallOutcome::kDone) << name;
  }
  void store(int pe, std::uint64_t index, std::uint64_t value) {
    vgpu::Memory::Accessor who;
    EXPECT_TRUE(memory_->write(at(pe, index), &value, 8, who));
  }
  std::uint64_t load(int pe, std::uint64_t index) {
    std::uint64_t value = 0;
    vgpu::Memory::Accessor who;
    EXPECT_TRUE(memory_->read(at(pe, index), &value, 8, who));
    return value;
  }
  std::uint64_t at(int pe, std::uint64_t index) const {
    return box_[static_cast<std::size_t>(pe)] + 8 * index;
  }
  Fabric& fabric() { return fabric_; }
  bool clean() const { return findings_.empty(); }

  static constexpr std::uint64_t kBytes = 1U << 17U;

 private:
  int n_pes_;
  vgpu::FindingLog findings_;
  std::unique_ptr<vgpu::Memory> memory_;
  Fabric fabric_;
  std::vector<std::uint64_t> box_;
};

TEST(DeliveryTest, LazyWritesNothingBeforeQuiet) {
  Wire wire(Timing::kLazy);
  wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), 7, 1});
  EXPECT_EQ(wire.load(1, 0), 0U);
  EXPECT_EQ(wire.fabric().pending(), 1U);
  wire.call(0, "nvshmem_quiet", {});
  EXPECT_EQ(wire.load(1, 0), 7U);
  EXPECT_EQ(wire.fabric().pending(), 0U);
}

TEST(DeliveryTest, EagerWritesAtOnce) {
  Wire wire(Timing::kEager);
  wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), 7, 1});
  EXPECT_EQ(wire.load(1, 0), 7U);
  EXPECT_EQ(wire.fabric().pending(), 0U);
}

TEST(DeliveryTest, ABlockingPutHasReadItsSourceAndANonBlockingOneHasNot) {
  Wire wire(Timing::kLazy);
  wire.store(0, 1, 5);
  wire.call(0, "nvshmem_uint64_put", {wire.at(0, 2), wire.at(0, 1), 1, 1});
  wire.call(0, "nvshmem_uint64_put_nbi", {wire.at(0, 3), wire.at(0, 1), 1, 1});
  wire.store(0, 1, 6);
  wire.call(0, "nvshmem_quiet", {});
  EXPECT_EQ(wire.load(1, 2), 5U);
  EXPECT_EQ(wire.load(1, 3), 6U);
}

TEST(DeliveryTest, AFenceOrdersWhatGoesToOnePe) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Wire wire(Timing::kLazy, seed);
    wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), 1, 1});
    wire.call(0, "nvshmem_fence", {});
    wire.call(0, "nvshmem_uint64_p", {wire.at(0, 1), 1, 1});
    EXPECT_TRUE(wire.fabric().deliver(0, true));
    EXPECT_EQ(wire.load(1, 0), 1U) << "seed " << seed;
  }
}

TEST(DeliveryTest, WithoutAFenceEitherOrderIsSeen) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Wire wire(Timing::kLazy, seed);
    wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), 1, 1});
    wire.call(0, "nvshmem_uint64_p", {wire.at(0, 1), 1, 1});
    EXPECT_TRUE(wire.fabric().deliver(0, true));
    first.insert(wire.load(1, 0));
  }
  EXPECT_EQ(first.size(), 2U);
}

TEST(DeliveryTest, ASignalFollowsItsOwnData) {
  for (const Timing timing : {Timing::kMixed, Timing::kLazy, Timing::kEager}) {
    for (const char* fabric : {"nvlink", "rdma"}) {
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Wire wire(timing, seed, fabric);
        constexpr std::uint64_t kN = 2048;
        for (std::uint64_t i = 0; i < kN; ++i) wire.store(0, i, i + 1);
        wire.call(0, "nvshmem_uint64_put_signal_nbi",
                  {wire.at(0, 2 * kN), wire.at(0, 0), kN, wire.at(0, 4 * kN), 1, 9, 1});
        std::uint64_t now = 0;
        while (wire.load(1, 4 * kN) == 0) {
          now += 64;
          wire.fabric().deliver(now, false);
        }
        for (std::uint64_t i = 0; i < kN; ++i) ASSERT_EQ(wire.load(1, 2 * kN + i), i + 1);
        EXPECT_TRUE(wire.clean());
      }
    }
  }
}

TEST(DeliveryTest, QuietOfAHostLeavesWhatStreamsIssued) {
  Wire wire(Timing::kLazy);
  wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), 1, 1}, true);
  wire.call(0, "nvshmem_quiet", {});
  EXPECT_EQ(wire.load(1, 0), 0U);
  wire.call(0, "nvshmem_quiet", {}, true);
  EXPECT_EQ(wire.load(1, 0), 1U);
}

TEST(DeliveryTest, ASyncCompletesNothing) {
  Wire wire(Timing::kLazy);
  wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), 1, 1}, true);
  wire.call(0, "nvshmem_uint64_p", {wire.at(0, 1), 1, 1});
  EXPECT_EQ(wire.attempt(0, "nvshmem_sync_all", {}), CallOutcome::kBlocked);
  EXPECT_EQ(wire.load(1, 0) + wire.load(1, 1), 0U);
  wire.call(1, "nvshmem_sync_all", {});
  EXPECT_EQ(wire.load(1, 0) + wire.load(1, 1), 0U);
}

TEST(DeliveryTest, ABarrierCompletesBothSides) {
  Wire other(Timing::kLazy);
  other.call(0, "nvshmem_uint64_p", {other.at(0, 0), 1, 1}, true);
  other.call(0, "nvshmem_uint64_p", {other.at(0, 1), 1, 1});
  EXPECT_EQ(other.attempt(0, "nvshmem_barrier_all", {}), CallOutcome::kBlocked);
  EXPECT_EQ(other.load(1, 0) + other.load(1, 1), 2U);
}

TEST(DeliveryTest, FetchingAtomicsAreDoneAndComeAfterAFence) {
  Wire wire(Timing::kLazy);
  wire.call(0, "nvshmem_uint64_atomic_add", {wire.at(0, 0), 3, 1});
  wire.call(0, "nvshmem_fence", {});
  wire.call(0, "nvshmem_uint64_atomic_fetch_add", {wire.at(0, 0), 4, 1});
  EXPECT_EQ(wire.load(1, 0), 7U);
}

TEST(DeliveryTest, ManyFencesInARowTakeNoStack) {
  Wire wire(Timing::kLazy);
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    wire.call(0, "nvshmem_uint64_p", {wire.at(0, 0), i, 1});
    wire.call(0, "nvshmem_fence", {});
  }
  wire.call(0, "nvshmem_quiet", {});
  EXPECT_EQ(wire.load(1, 0), 4'999U);
}

TEST(DeliveryTest, TheSameSeedGivesTheSameOrder) {
  const auto trace = [](std::uint64_t seed) {
    Wire wire(Timing::kMixed, seed);
    for (std::uint64_t i = 0; i < 64; ++i) wire.call(0, "nvshmem_uint64_p", {wire.at(0, i), i + 1, 1});
    std::vector<std::uint64_t> seen;
    for (std::uint64_t now = 0; wire.fabric().pending() != 0; now += 16) {
      wire.fabric().deliver(now, false);
      seen.push_back(wire.fabric().pending());
    }
    return seen;
  };
  EXPECT_EQ(trace(3), trace(3));
  EXPECT_NE(trace(3), trace(4));
}

}  // namespace
}  // namespace echolo::shmem
