// NVSHMEM operations as hosts issue them; kernels reach the same code (tests/corpus has those).
#include <gtest/gtest.h>

#include <memory>

#include "shmem/fabric.hpp"

namespace echolo::shmem {
namespace {

using vgpu::CallOutcome;
using vgpu::FindingKind;

class FabricTest : public ::testing::Test {
 protected:
  static constexpr int kPes = 3;

  void SetUp() override {
    vgpu::MemoryConfig config;
    config.n_pes = kPes;
    auto memory = vgpu::Memory::create(config, findings_);
    ASSERT_TRUE(memory.ok()) << memory.error().render();
    memory_ = std::move(memory).value();
    fabric_ = std::make_unique<Fabric>(FabricConfig{kPes, "nvlink", Timing::kEager, 1});
    fabric_->attach(*memory_, findings_);
  }

  Fabric::HostCall make(int pe, std::string name, std::vector<std::uint64_t> arguments, int line = 1) {
    Fabric::HostCall call;
    call.name = std::move(name);
    call.pe = pe;
    call.arguments = std::move(arguments);
    call.site.pe = pe;
    call.site.on_device = false;
    call.site.where = {"program.cu", line, 0, "main"};
    return call;
  }

  // One attempt that must end at once.
  std::uint64_t call(int pe, const std::string& name, std::vector<std::uint64_t> arguments) {
    Fabric::HostCall c = make(pe, name, std::move(arguments));
    EXPECT_EQ(fabric_->host_call(c), CallOutcome::kDone) << name;
    return c.result;
  }

  // A collective with the same arguments on every PE; results by PE.
  std::vector<std::uint64_t> collective(const std::string& name,
                                        std::vector<std::vector<std::uint64_t>> arguments) {
    std::vector<Fabric::HostCall> calls;
    for (int pe = 0; pe < kPes; ++pe)
      calls.push_back(make(pe, name, arguments[static_cast<std::size_t>(pe)]));
    for (int pe = 0; pe + 1 < kPes; ++pe) {
      EXPECT_EQ(fabric_->host_call(calls[static_cast<std::size_t>(pe)]), CallOutcome::kBlocked);
    }
    std::vector<std::uint64_t> results(kPes);
    EXPECT_EQ(fabric_->host_call(calls.back()), CallOutcome::kDone);
    for (int pe = 0; pe + 1 < kPes; ++pe) {
      EXPECT_EQ(fabric_->host_call(calls[static_cast<std::size_t>(pe)]), CallOutcome::kDone);
    }
    for (std::size_t pe = 0; pe < kPes; ++pe) results[pe] = calls[pe].result;
    return results;
  }

  std::vector<std::uint64_t> allocate(std::uint64_t bytes) {
    return collective("nvshmem_malloc", {{bytes}, {bytes}, {bytes}});
  }

  template <typename T>
  void store(std::uint64_t address, T value) {
    vgpu::Site site;
    vgpu::Memory::Accessor who;
    who.site = &site;
    who.any_pe = true;
    ASSERT_TRUE(memory_->write(address, &value, sizeof value, who));
  }
  template <typename T>
  T load(std::uint64_t address) {
    T value{};
    vgpu::Site site;
    vgpu::Memory::Accessor who;
    who.site = &site;
    who.any_pe = true;
    EXPECT_TRUE(memory_->read(address, &value, sizeof value, who));
    return value;
  }

  vgpu::FindingLog findings_;
  std::unique_ptr<vgpu::Memory> memory_;
  std::unique_ptr<Fabric> fabric_;
};

TEST_F(FabricTest, PutReachesTheSameObjectOnAnotherPe) {
  const auto buffer = allocate(64);
  store<float>(buffer[0], 1.5F);
  store<float>(buffer[0] + 4, 2.5F);
  call(0, "nvshmem_float_put", {buffer[0] + 8, buffer[0], 2, 2});
  EXPECT_EQ(load<float>(buffer[2] + 8), 1.5F);
  EXPECT_EQ(load<float>(buffer[2] + 12), 2.5F);
  collective("nvshmem_barrier_all", {{}, {}, {}});
  call(1, "nvshmem_float_get", {buffer[1], buffer[1] + 8, 2, 2});
  EXPECT_EQ(load<float>(buffer[1] + 4), 2.5F);
  EXPECT_TRUE(findings_.empty());
}

TEST_F(FabricTest, StridedTransfersStepOnBothSides) {
  const auto buffer = allocate(256);
  for (std::uint64_t i = 0; i < 8; ++i) store<std::int32_t>(buffer[0] + 4 * i, static_cast<std::int32_t>(i));
  call(0, "nvshmem_int_iput", {buffer[0] + 128, buffer[0], 3, 2, 4, 1});  // 0 2 4 6 to every third place
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(load<std::int32_t>(buffer[1] + 128 + 12 * i), static_cast<std::int32_t>(2 * i));
}

TEST_F(FabricTest, ElementAccessAndAtomics) {
  const auto word = allocate(8);
  call(0, "nvshmem_uint64_p", {word[0], 40, 1});
  EXPECT_EQ(call(2, "nvshmem_uint64_g", {word[2], 1}), 40U);
  EXPECT_EQ(call(2, "nvshmem_uint64_atomic_fetch_add", {word[2], 2, 1}), 40U);
  EXPECT_EQ(call(0, "nvshmem_uint64_atomic_compare_swap", {word[0], 41, 7, 1}), 42U);
  EXPECT_EQ(call(0, "nvshmem_uint64_atomic_compare_swap", {word[0], 42, 7, 1}), 42U);
  EXPECT_EQ(call(0, "nvshmem_uint64_atomic_fetch", {word[0], 1}), 7U);
  call(0, "nvshmem_uint64_atomic_inc", {word[0], 1});
  EXPECT_EQ(call(0, "nvshmem_uint64_atomic_swap", {word[0], 1, 1}), 8U);
  call(0, "nvshmem_uint64_atomic_or", {word[0], 6, 1});
  EXPECT_EQ(call(0, "nvshmem_uint64_atomic_fetch_xor", {word[0], 2, 1}), 7U);
  EXPECT_EQ(load<std::uint64_t>(word[1]), 5U);
}

TEST_F(FabricTest, PutWithSignalAndWaits) {
  const auto buffer = allocate(16);
  store<std::uint64_t>(buffer[1] + 8, 0);
  store<std::uint64_t>(buffer[0], 77);
  Fabric::HostCall wait = make(1, "nvshmemx_signal_wait_until_on_stream", {buffer[1] + 8, 5, 3});
  EXPECT_EQ(fabric_->host_call(wait), CallOutcome::kBlocked);
  EXPECT_EQ(wait.wait.address, buffer[1] + 8);
  EXPECT_EQ(wait.wait.comparison, ">= 3");
  EXPECT_EQ(wait.wait.holds, "0");
  call(0, "nvshmemx_putmem_signal_on_stream", {buffer[0], buffer[0], 8, buffer[0] + 8, 2, 9, 1});
  EXPECT_EQ(fabric_->host_call(wait), CallOutcome::kBlocked);
  call(0, "nvshmemx_signal_op", {buffer[0] + 8, 1, 10, 1});
  EXPECT_EQ(fabric_->host_call(wait), CallOutcome::kDone);
  EXPECT_EQ(wait.result, 3U);
  EXPECT_EQ(load<std::uint64_t>(buffer[1]), 77U);
}

TEST_F(FabricTest, CollectivesMoveWhatTheyShould) {
  const auto source = allocate(64);
  const auto dest = allocate(64);
  for (std::uint64_t pe = 0; pe < kPes; ++pe) {
    for (std::uint64_t i = 0; i < kPes; ++i)
      store<std::int32_t>(source[pe] + 4 * i, static_cast<std::int32_t>(10 * pe + i));
  }
  const auto on_all = [&](const std::string& name, std::vector<std::uint64_t> rest) {
    std::vector<std::vector<std::uint64_t>> arguments;
    for (std::size_t pe = 0; pe < kPes; ++pe) {
      std::vector<std::uint64_t> one = {0, dest[pe], source[pe]};
      one.insert(one.end(), rest.begin(), rest.end());
      arguments.push_back(one);
    }
    collective(name, arguments);
  };
  on_all("nvshmem_int_alltoall", {1});
  for (std::uint64_t i = 0; i < kPes; ++i)
    EXPECT_EQ(load<std::int32_t>(dest[1] + 4 * i), static_cast<std::int32_t>(10 * i + 1));
  on_all("nvshmem_int_fcollect", {1});
  for (std::uint64_t i = 0; i < kPes; ++i)
    EXPECT_EQ(load<std::int32_t>(dest[2] + 4 * i), static_cast<std::int32_t>(10 * i));
  on_all("nvshmem_int_broadcast", {3, 2});
  EXPECT_EQ(load<std::int32_t>(dest[0] + 4), 21);
  on_all("nvshmem_int_sum_reduce", {3});
  EXPECT_EQ(load<std::int32_t>(dest[0]), 30);
  EXPECT_EQ(load<std::int32_t>(dest[2] + 8), 36);
  on_all("nvshmem_int_max_reducescatter", {1});
  EXPECT_EQ(load<std::int32_t>(dest[1]), 21);
  EXPECT_TRUE(findings_.empty());
}

TEST_F(FabricTest, ABlockedCollectiveSaysWhoIsMissing) {
  Fabric::HostCall first = make(0, "nvshmem_barrier_all", {});
  EXPECT_EQ(fabric_->host_call(first), CallOutcome::kBlocked);
  EXPECT_EQ(first.wait.collective, "nvshmem_barrier_all, team of 3: PE 1, PE 2 have not arrived");
  Fabric::HostCall second = make(1, "nvshmem_barrier_all", {});
  EXPECT_EQ(fabric_->host_call(second), CallOutcome::kBlocked);
  fabric_->pe_gone(2, "its process exited with code 3");
  EXPECT_EQ(fabric_->host_call(first), CallOutcome::kBlocked);
  EXPECT_EQ(first.wait.collective,
            "nvshmem_barrier_all, team of 3: PE 2 (its process exited with code 3) has not arrived");
}

TEST_F(FabricTest, UnequalSizesAreASymmetricMismatch) {
  Fabric::HostCall a = make(0, "nvshmem_malloc", {1024}, 12);
  Fabric::HostCall b = make(1, "nvshmem_malloc", {2048}, 12);
  EXPECT_EQ(fabric_->host_call(a), CallOutcome::kBlocked);
  EXPECT_EQ(fabric_->host_call(b), CallOutcome::kFault);
  ASSERT_EQ(findings_.all().size(), 1U);
  EXPECT_EQ(findings_.all()[0].kind, FindingKind::kSymmetricMismatch);
  EXPECT_EQ(findings_.all()[0].sites[0].where.line, 12);
  EXPECT_EQ(findings_.all()[0].message, "PE 1 asks nvshmem_malloc for 2048 bytes, PE 0 for 1024");
}

TEST_F(FabricTest, DifferentCollectivesAreACollectiveMismatch) {
  Fabric::HostCall a = make(0, "nvshmem_barrier_all", {});
  Fabric::HostCall b = make(1, "nvshmem_sync_all", {});
  EXPECT_EQ(fabric_->host_call(a), CallOutcome::kBlocked);
  EXPECT_EQ(fabric_->host_call(b), CallOutcome::kFault);
  EXPECT_EQ(findings_.all()[0].kind, FindingKind::kCollectiveMismatch);
}

TEST_F(FabricTest, TwoAtOnceOnOnePeAreACollectiveMismatch) {
  Fabric::HostCall a = make(0, "nvshmem_barrier_all", {});
  Fabric::HostCall b = make(0, "nvshmem_barrier_all", {});
  EXPECT_EQ(fabric_->host_call(a), CallOutcome::kBlocked);
  EXPECT_EQ(fabric_->host_call(b), CallOutcome::kFault);
  EXPECT_EQ(findings_.all()[0].kind, FindingKind::kCollectiveMismatch);
}

TEST_F(FabricTest, RemoteFaultsNameTheObject) {
  const auto buffer = allocate(64);
  Fabric::HostCall past = make(0, "nvshmem_float_put", {buffer[0] + 60, buffer[0], 2, 1});
  EXPECT_EQ(fabric_->host_call(past), CallOutcome::kFault);
  ASSERT_EQ(findings_.all().size(), 1U);
  EXPECT_EQ(findings_.all()[0].kind, FindingKind::kOutOfBounds);
  Fabric::HostCall nobody = make(0, "nvshmem_float_p", {buffer[0], 0, 7}, 2);
  EXPECT_EQ(fabric_->host_call(nobody), CallOutcome::kFault);
  const auto plain = memory_->allocate(0, 64, 256, vgpu::AllocationKind::kDevice, "", "cudaMalloc", "");
  ASSERT_TRUE(plain.ok());
  Fabric::HostCall wrong = make(0, "nvshmem_float_p", {*plain, 0, 1}, 3);
  EXPECT_EQ(fabric_->host_call(wrong), CallOutcome::kFault);
  ASSERT_EQ(findings_.all().size(), 3U);
  EXPECT_EQ(findings_.all()[1].message, "nvshmem_float_p names PE 7, and there is none");
  EXPECT_EQ(findings_.all()[2].message, "the destination of nvshmem_float_p is not in the symmetric heap");
}

TEST_F(FabricTest, AStartBeyondTheEndNamesTheObjectBefore) {
  const auto buffer = allocate(64);
  Fabric::HostCall beyond = make(0, "nvshmem_float_put", {buffer[0] + 96, buffer[0], 2, 1});
  EXPECT_EQ(fabric_->host_call(beyond), CallOutcome::kFault);
  ASSERT_EQ(findings_.all().size(), 1U);
  EXPECT_NE(findings_.all()[0].message.find("past the end of the 64 bytes from nvshmem_malloc"),
            std::string::npos)
      << findings_.all()[0].message;
}

TEST_F(FabricTest, TeamsSplitAndTranslate) {
  const auto handles = collective("nvshmem_team_split_strided", {{0, 0, 2, 2}, {0, 0, 2, 2}, {0, 0, 2, 2}});
  EXPECT_EQ(handles[0], handles[2]);
  EXPECT_EQ(static_cast<std::int32_t>(handles[1]), -1);
  EXPECT_EQ(call(2, "nvshmem_team_my_pe", {handles[2]}), 1U);
  EXPECT_EQ(call(2, "nvshmem_team_n_pes", {handles[2]}), 2U);
  EXPECT_EQ(static_cast<std::int64_t>(call(1, "nvshmem_team_my_pe", {handles[0]})), -1);
  EXPECT_EQ(call(0, "nvshmem_team_translate_pe", {handles[0], 1, 0}), 2U);
  Fabric::HostCall a = make(0, "nvshmem_barrier", {handles[0]});
  Fabric::HostCall b = make(2, "nvshmem_barrier", {handles[0]});
  EXPECT_EQ(fabric_->host_call(a), CallOutcome::kBlocked);
  EXPECT_EQ(fabric_->host_call(b), CallOutcome::kDone);
  EXPECT_EQ(fabric_->host_call(a), CallOutcome::kDone);
}

TEST_F(FabricTest, PeersAreReachableOnlyWhereTheFabricSaysSo) {
  const auto buffer = allocate(64);
  EXPECT_EQ(call(0, "nvshmem_ptr", {buffer[0] + 4, 2}), buffer[2] + 4);
  EXPECT_EQ(call(0, "nvshmem_ptr", {buffer[0], 9}), 0U);
  Fabric rdma(FabricConfig{kPes, "rdma", Timing::kEager, 1});
  rdma.attach(*memory_, findings_);
  Fabric::HostCall own = make(0, "nvshmem_ptr", {buffer[0], 0});
  EXPECT_EQ(rdma.host_call(own), CallOutcome::kDone);
  EXPECT_EQ(own.result, buffer[0]);
  Fabric::HostCall peer = make(0, "nvshmem_ptr", {buffer[0], 1});
  EXPECT_EQ(rdma.host_call(peer), CallOutcome::kDone);
  EXPECT_EQ(peer.result, 0U);
}

TEST_F(FabricTest, EveryDeviceFunctionOfTheHeaderIsThere) {
  // Names as the header declares them; the corpus compiles against the header, so a missing one shows there
  // by name.
  for (const char* name :
       {"nvshmem_float_put", "nvshmemx_float_put_nbi_block", "nvshmemx_putmem_signal_nbi_warp",
        "nvshmem_put128_nbi", "nvshmemx_iput64_block", "nvshmem_uint64_wait_until_some_vector",
        "nvshmem_int_test_any", "nvshmemx_float_sum_reduce_block", "nvshmemx_broadcastmem_warp",
        "nvshmem_half_p", "nvshmem_bfloat16_g", "nvshmemx_double_atomic_fetch_add",
        "nvshmemx_barrier_all_block", "nvshmemx_team_sync_warp", "nvshmem_signal_wait_until",
        "nvshmem_ulonglong_atomic_fetch_xor", "nvshmem_ptrdiff_atomic_compare_swap"}) {
    EXPECT_NE(fabric_->find(name), nullptr) << name;
  }
  EXPECT_EQ(fabric_->find("nvshmem_malloc"), nullptr);
  EXPECT_EQ(fabric_->find("nvshmem_ptrdiff_sum_reduce"), nullptr);
}

}  // namespace
}  // namespace echolo::shmem
