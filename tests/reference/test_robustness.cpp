// What must hold when several processes share a cache, when a person presses Ctrl-C, and against the
// libraries' own view.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "problem/safetensors.hpp"
#include "problem/suite.hpp"
#include "support.hpp"

namespace echolo {
namespace {

ReferenceRequest smoke(const Problem& problem, const std::string& cache) {
  ReferenceRequest request;
  request.world = 2;
  request.cache_directory = cache;
  request.cases = {{*problem.size("smoke", 2), problem.dtypes.front(), 5, 0}};
  return request;
}

// How many entries of the cache's reference folder are left over from unfinished runs.
int n_scratch(const std::string& cache) {
  int n = 0;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(cache + "/reference", code)) {
    n += entry.path().filename().string().starts_with("tmp-") ? 1 : 0;
  }
  return n;
}

TEST(RarerRobustness, TwoProcessesShareACache) {
  const Folder cache;
  const auto problem = find_problem("all_reduce");
  ASSERT_TRUE(problem.ok());
  const ReferenceRequest request = smoke(*problem, cache.path());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run_reference(*problem, request).ok() ? 0 : 1);
  const auto here = run_reference(*problem, request);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_TRUE(here.ok()) << here.error().render();
  EXPECT_EQ(n_scratch(cache.path()), 0);
  EXPECT_TRUE(run_reference(*problem, request)->cases[0].cached);
  // Another run, elsewhere, gives the same bytes.
  const auto elsewhere = run_reference(*problem, smoke(*problem, test_cache()));
  ASSERT_TRUE(elsewhere.ok());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const RankResult& a = here->cases[0].ranks[rank];
    const RankResult& b = elsewhere->cases[0].ranks[rank];
    EXPECT_EQ(*read_file(a.inputs_path), *read_file(b.inputs_path));
    EXPECT_EQ(*read_file(a.reference_path), *read_file(b.reference_path));
    EXPECT_EQ(*read_file(a.oracle_path), *read_file(b.oracle_path));
  }
}

TEST(Robustness, CtrlCLeavesNothingHalfWritten) {
  const Folder cache;
  const auto problem = find_problem("all_reduce");
  ASSERT_TRUE(problem.ok());
  const ReferenceRequest request = smoke(*problem, cache.path());
  const pid_t child = ::fork();
  if (child == 0) {
    install_interrupt_handler();
    const auto run = run_reference(*problem, request);
    ::_exit(!run.ok() && run.error().kind == ErrorKind::kInterrupted ? 130 : 1);
  }
  for (int i = 0; i < 2000 && n_scratch(cache.path()) == 0; ++i) ::usleep(10'000);
  EXPECT_EQ(n_scratch(cache.path()), 1);
  ::usleep(300'000);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
  EXPECT_EQ(n_scratch(cache.path()), 0);
}

TEST(RarerRobustness, WhatAKilledProcessLeftIsRemovedByTheNext) {
  const Folder cache;
  const auto problem = find_problem("all_reduce");
  ASSERT_TRUE(problem.ok());
  const ReferenceRequest request = smoke(*problem, cache.path());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run_reference(*problem, request).ok() ? 0 : 1);
  for (int i = 0; i < 2000 && n_scratch(cache.path()) == 0; ++i) ::usleep(10'000);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(n_scratch(cache.path()), 1);
  EXPECT_TRUE(run_reference(*problem, request).ok());
  EXPECT_EQ(n_scratch(cache.path()), 0);
}

TEST(Robustness, AFullOrForbiddenCacheIsTheMachinesFault) {
  const auto problem = find_problem("all_reduce");
  ASSERT_TRUE(problem.ok());
  const auto run = run_reference(*problem, smoke(*problem, "/proc/echolo"));
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().kind, ErrorKind::kMachine) << run.error().render();
}

TEST(RarerRobustness, LargeSizesRunWithoutAnOracle) {
  const auto problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  ReferenceRequest request = smoke(*problem, test_cache());
  request.cases[0].params = *problem->size("m1024", 2);
  request.cases[0].dtype = DType::kF32;
  request.oracle = false;
  const auto run = run_reference(*problem, request);
  ASSERT_TRUE(run.ok()) << run.error().render();
  EXPECT_TRUE(run->cases[0].noise.empty());
  EXPECT_TRUE(run->cases[0].ranks[0].oracle_path.empty());
  EXPECT_EQ(run->cases[0].ranks[0].flops, 2LL * 1024 * 1024 * 1024);
}

// Files of ours read by the safetensors library and the other way round, and FLOPs against torch's own
// counter.
TEST(RarerRobustness, AgreesWithTheLibraries) {
  const Folder folder;
  const auto python = reference_python();
  ASSERT_TRUE(python.ok()) << python.error().render();
  const std::uint16_t brain[] = {0x3f80, 0xc000, 0x7fed};
  const std::int64_t whole[] = {std::int64_t{1} << 60, -1};
  const std::uint8_t eight[] = {0x38, 0x7e, 0x01};
  const std::vector<TensorView> tensors = {{{"brain", DType::kBf16, {3, 1}}, std::as_bytes(std::span(brain))},
                                           {{"whole", DType::kI64, {2}}, std::as_bytes(std::span(whole))},
                                           {{"eight", DType::kF8E4M3, {3}}, std::as_bytes(std::span(eight))}};
  ASSERT_TRUE(write_safetensors(folder / "ours", tensors, {{"by", "us"}}).ok());
  const std::string script = R"(
import sys, torch
from safetensors.torch import load_file, save_file
t = load_file('ours')
assert t['brain'].dtype == torch.bfloat16 and t['brain'].shape == (3, 1) and t['brain'][1, 0] == -2
assert t['whole'].tolist() == [1 << 60, -1]
assert t['eight'].float().tolist() == [1.0, 448.0, 2.0 ** -9]
save_file({**t, 'half': torch.tensor([[0.5, -65504.0]], dtype=torch.float16), 'no': torch.zeros(0, 3),
           'flag': torch.tensor(True)}, 'theirs')
sys.path.insert(0, sys.argv[1])
from echolo.reference_rank import OperationWatch
from torch.utils.flop_counter import FlopCounterMode
import torch.nn.functional as F
def work():
    a, b = torch.randn(8, 16, requires_grad=True), torch.randn(16, 24)
    c = F.linear(a @ b, torch.randn(4, 24), torch.randn(4)) + torch.addmm(torch.randn(4), a, torch.randn(16, 4))
    q = torch.randn(2, 2, 8, 16)
    d = F.scaled_dot_product_attention(q, q, q) + torch.einsum('bhij,bhjk->bhik', q, q.transpose(2, 3)) @ q
    F.conv2d(torch.randn(1, 3, 8, 8), torch.randn(5, 3, 3, 3))
    c.sum().backward()
    with torch.inference_mode():
        torch.matmul(b.detach(), b.detach().T)
ours, theirs = OperationWatch(), FlopCounterMode(display=False)
with ours: work()
with theirs: work()
assert ours.flops == theirs.get_total_flops() > 0, (ours.flops, theirs.get_total_flops())
)";
  Command command;
  command.argv = {*python, "-c", script, *echolo_home() + "/python"};
  command.directory = folder.path();
  command.env = {{"PYTHONDONTWRITEBYTECODE", ""}};
  const auto outcome = run_command(command);
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome->ok()) << outcome->standard_error;
  const auto read = Safetensors::read(folder / "theirs");
  ASSERT_TRUE(read.ok()) << read.error().render();
  EXPECT_EQ(read->tensors().size(), 6U);
  EXPECT_EQ(read->find("half")->info, (TensorInfo{"half", DType::kF16, {1, 2}}));
  EXPECT_EQ(element_as_double(read->find("half")->bytes.data(), DType::kF16, 1), -65504.0);
  EXPECT_EQ(element_as_int(read->find("whole")->bytes.data(), DType::kI64, 0), std::int64_t{1} << 60);
  EXPECT_EQ(read->find("no")->info.shape, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(element_as_int(read->find("flag")->bytes.data(), DType::kBool, 0), 1);
}

}  // namespace
}  // namespace echolo
