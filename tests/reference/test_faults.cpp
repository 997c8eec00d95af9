// Every way in which a problem's own code can be wrong, and what a person is told.
#include <chrono>

#include "base/text.hpp"
#include "problem/safetensors.hpp"
#include "support.hpp"

namespace echolo {
namespace {

using testing::Test;

class ReferenceFaults : public Test {
 protected:
  Result<ReferenceRun> run(const std::string& python, const std::string& toml = kSmallToml,
                           std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    write(folder_ / "tiny/problem.toml", toml);
    write(folder_ / "tiny/reference.py", python);
    const auto problem = load_problem(folder_ / "tiny");
    if (!problem) return problem.error();
    ReferenceRequest request;
    request.world = problem->worlds.front();
    request.cache_directory = test_cache();
    request.limit = limit;
    const auto params = problem->size("smoke", request.world);
    if (!params) return params.error();
    request.cases = {{*params, problem->dtypes.front(), 1, 0}};
    return run_reference(*problem, request);
  }

  // The rendered error, which must be a user's, and leave nothing half-written.
  std::string fault(const Result<ReferenceRun>& result) {
    EXPECT_FALSE(result.ok());
    if (result.ok()) return {};
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage) << result.error().render();
    for (const auto& entry : std::filesystem::directory_iterator(test_cache() + "/reference")) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("tmp-")) << entry.path();
    }
    return result.error().render();
  }

  Folder folder_;
};

// Those that start Python for what is rare; they run with the slow tests.
class RarerReferenceFaults : public ReferenceFaults {};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(ReferenceFaults, ARaisedExceptionShowsItsOwnTracebackFromItsOwnFile) {
  const std::string text =
      fault(run("import torch.distributed as dist\n"
                "def helper(x):\n"
                "    return x.reshape(3, 5)\n"
                "def solution(x):\n"
                "    dist.all_reduce(x)\n"
                "    return helper(x)\n"));
  EXPECT_TRUE(has(text, "tiny/reference.py:3: solution() raised RuntimeError on ranks 0, 1")) << text;
  EXPECT_TRUE(has(text, "Traceback (most recent call last):")) << text;
  EXPECT_TRUE(has(text, "line 6, in solution")) << text;
  EXPECT_TRUE(has(text, "return x.reshape(3, 5)")) << text;
  EXPECT_TRUE(has(text, "shape '[3, 5]' is invalid")) << text;
  EXPECT_FALSE(has(text, "reference_rank.py")) << text;
  EXPECT_FALSE(has(text, "site-packages")) << text;
}

TEST_F(RarerReferenceFaults, AnExceptionOfOneRankIsThatRanks) {
  const std::string text =
      fault(run("import torch.distributed as dist\n"
                "def solution(x):\n"
                "    if dist.get_rank() == 1:\n"
                "        raise ValueError('rank one has a problem')\n"
                "    dist.all_reduce(x)\n"
                "    return x\n"));
  EXPECT_TRUE(has(text, "raised ValueError on rank 1\n")) << text;
  EXPECT_TRUE(has(text, "rank one has a problem")) << text;
}

TEST_F(RarerReferenceFaults, AFileThatDoesNotParseIsNamedWithItsLine) {
  const std::string text = fault(run("def solution(x):\n    return x +\n"));
  EXPECT_TRUE(has(text, "tiny/reference.py:2: reference.py raised SyntaxError")) << text;
}

TEST_F(ReferenceFaults, AHangIsKilledAndNamesRanksAndCollectives) {
  const auto start = std::chrono::steady_clock::now();
  const std::string text =
      fault(run("import torch\n"
                "import torch.distributed as dist\n"
                "def solution(x):\n"
                "    if dist.get_rank() == 0:\n"
                "        dist.all_reduce(x)\n"
                "    else:\n"
                "        dist.recv(x, src=0)\n"
                "    return x\n",
                kSmallToml, std::chrono::seconds(2)));
  // Two seconds and the start of PyTorch, which takes a minute where a machine is ten times overloaded.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(4));
  EXPECT_TRUE(has(text, "did not finish within 2 s")) << text;
  EXPECT_TRUE(
      has(text, "rank 0: in all_reduce of 32 bytes f32, number 1 of its collectives at reference.py:5"))
      << text;
  EXPECT_TRUE(
      has(text, "rank 1: in recv of 32 bytes f32 with rank 0, number 1 of its collectives at reference.py:7"))
      << text;
}

TEST_F(RarerReferenceFaults, ALoopThatNeverEndsIsNamedByLine) {
  const std::string text =
      fault(run("import torch.distributed as dist\n"
                "def solution(x):\n"
                "    dist.all_reduce(x)\n"
                "    while dist.get_rank() == 1:\n"
                "        pass\n"
                "    return x\n",
                kSmallToml, std::chrono::seconds(2)));
  EXPECT_TRUE(has(text, "rank 0: has returned from solution()")) << text;
  EXPECT_TRUE(has(text, "rank 1: in solution(), after all_reduce of 32 bytes f32, number 1")) << text;
}

TEST_F(RarerReferenceFaults, ADyingRankIsNamed) {
  const std::string text =
      fault(run("import os, torch.distributed as dist\n"
                "def solution(x):\n"
                "    if dist.get_rank() == 1:\n"
                "        os._exit(7)\n"
                "    dist.all_reduce(x)\n"
                "    return x\n"));
  EXPECT_TRUE(
      has(text, "rank 1 of the reference left with exit code 7, in solution(), before its first collective"))
      << text;
}

TEST_F(RarerReferenceFaults, AnInputThatSolutionDoesNotTakeIsNeverUsed) {
  const std::string toml = std::string(kSmallToml) + "[[inputs]]\nname = \"extra\"\nshape = [\"N\"]\n";
  const std::string text = fault(run("def solution(x):\n    return x * 2\n", toml));
  EXPECT_TRUE(has(text, "tiny/problem.toml:17: input 'extra' is never used by the reference")) << text;
}

TEST_F(ReferenceFaults, AnInputThatSolutionTakesAndForgetsIsNeverUsed) {
  const std::string toml = std::string(kSmallToml) + "[[inputs]]\nname = \"extra\"\nshape = [\"N\"]\n";
  const std::string text =
      fault(run("def solution(x, extra):\n    n = extra.shape[0]\n    return x * n\n", toml));
  EXPECT_TRUE(
      has(text, "tiny/problem.toml:17: input 'extra' is never used by the reference: no operation takes it"))
      << text;
}

TEST_F(RarerReferenceFaults, AnUnknownArgumentOffersNearNames) {
  const std::string text = fault(run("def solution(xs):\n    return xs\n"));
  EXPECT_TRUE(has(text, "tiny/reference.py:1: solution() takes 'xs', which is no input or parameter"))
      << text;
  EXPECT_TRUE(has(text, "did you mean 'x'")) << text;
}

TEST_F(RarerReferenceFaults, AMissingSolutionOffersNearNames) {
  const std::string text = fault(run("def solve(x):\n    return x\n"));
  EXPECT_TRUE(has(text, "reference.py defines no function solution()")) << text;
}

TEST_F(RarerReferenceFaults, AnotherShapeThanDeclaredIsSaid) {
  const std::string text = fault(run("def solution(x):\n    return x[:4] * 1\n"));
  EXPECT_TRUE(
      has(text, "tiny/problem.toml:14: output 'y' has shape [4] on rank 0, problem.toml declares [8] ([N])"))
      << text;
}

TEST_F(RarerReferenceFaults, AnotherDtypeOrNumberOfOutputsIsSaid) {
  EXPECT_TRUE(has(fault(run("def solution(x):\n    return x.double()\n")),
                  "output 'y' is f64 on rank 0, problem.toml declares f32"));
  EXPECT_TRUE(has(fault(run("def solution(x):\n    return x, x\n")),
                  "solution() returned 2 tensors, problem.toml declares 1: y"));
  EXPECT_TRUE(has(fault(run("def solution(x):\n    x.add_(1)\n")), "solution() returned nothing"));
}

TEST_F(RarerReferenceFaults, AnOverflowingReferenceHasNoNoise) {
  const std::string text =
      fault(run("def solution(x):\n    return x.abs() * 1e38 * 100 + 1e38 * x.abs() * 100\n"));
  EXPECT_TRUE(has(text, "give the inputs a smaller scale")) << text;
}

TEST_F(RarerReferenceFaults, MakeInputsMakesIrregularInputsAndCountedOutputs) {
  const std::string toml = R"(name = "route"
summary = "Rows with a positive first element go to the other rank."
family = "test"
worlds = [2]
dtypes = ["bf16"]
[params]
N = 8
[sizes]
smoke = { N = 8 }
small = { N = 16 }
[[outputs]]
name = "rows"
shape = ["?", 4]
bound = "N"
count = "n_rows"
[[outputs]]
name = "n_rows"
dtype = "i64"
shape = [1]
)";
  const std::string python = R"(import torch
import torch.distributed as dist

def make_inputs(rank, world, params, generator, dtype):
    keep = torch.rand(params.N, generator=generator) < 0.5
    return {"x": torch.randn(params.N, 4, generator=generator).to(dtype), "keep": keep}

def solution(x, keep):
    rows = x[keep]
    n = torch.tensor([rows.shape[0]])
    dist.barrier()
    return {"n_rows": n, "rows": rows * 1.5}
)";
  const auto result = run(python, toml);
  ASSERT_TRUE(result.ok()) << result.error().render();
  const RankResult& rank = result->cases[0].ranks[0];
  ASSERT_EQ(rank.inputs.size(), 2U);
  EXPECT_EQ(rank.inputs[0].name, "x");
  EXPECT_EQ(rank.inputs[1].dtype, DType::kBool);
  EXPECT_EQ(rank.outputs[0].shape, (std::vector<std::int64_t>{8, 4}));
  EXPECT_GE(rank.n_rows[0], 0);
  EXPECT_LE(rank.n_rows[0], 8);
  EXPECT_EQ(rank.n_rows[1], -1);
  EXPECT_NE(result->cases[0].ranks[1].n_rows[0] + rank.n_rows[0], 0);
}

// One run for much that must not be taken for a fault: inputs used through NumPy only or on one rank only,
// printing, parameters, rank and world as arguments, functional collectives.
TEST_F(ReferenceFaults, WhatIsUnusualButRightRuns) {
  const std::string toml = std::string(kSmallToml) + "[[inputs]]\nname = \"seen\"\nshape = [\"N\"]\n" +
                           "[[inputs]]\nname = \"once\"\nshape = [\"N\"]\n";
  const auto result = run(R"(import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

def solution(x, seen, once, N, rank, world, params, scale=2):
    assert N == params.N == params["N"] == 8 and world == 2
    print('{"error": {}}', flush=True)
    y = torch.from_numpy(seen.numpy() * 1)
    if rank == 0:
        y = y + once
    dist.broadcast(y, src=0)
    return y + funcol.all_reduce(x, "sum", dist.group.WORLD) * scale
)",
                          toml);
  ASSERT_TRUE(result.ok()) << result.error().render();
  const auto& calls = result->cases[0].ranks[1].collectives;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].op, "broadcast");
  EXPECT_EQ(calls[0].peer, 0);
  EXPECT_EQ(calls[0].bytes, 32);
  EXPECT_EQ(calls[1].op, "all_reduce");
  EXPECT_EQ(calls[1].reduce_op, "sum");
  EXPECT_EQ(calls[1].line, 12);
}

TEST_F(RarerReferenceFaults, InputsAreFilledAsDeclared) {
  const std::string toml = std::string(kSmallToml) + R"([[inputs]]
name = "index"
shape = ["N"]
dtype = "i32"
low = -3
high = "rank + 2"
[[inputs]]
name = "steps"
shape = [2, "N / 2"]
fill = "arange"
[[inputs]]
name = "same"
shape = ["N"]
fill = "uniform"
scale = 0.25
replicated = true
[[inputs]]
name = "ones"
shape = ["N"]
fill = "ones"
[[inputs]]
name = "zeros"
shape = ["N"]
dtype = "i64"
fill = "zeros"
)";
  const auto result =
      run("def solution(x, index, steps, same, ones, zeros):\n"
          "    return x + index + steps.flatten() + same + ones + zeros\n",
          toml);
  ASSERT_TRUE(result.ok()) << result.error().render();
  std::vector<double> same;
  for (const RankResult& rank : result->cases[0].ranks) {
    const auto file = Safetensors::read(rank.inputs_path);
    ASSERT_TRUE(file.ok());
    const auto values = [&](const std::string& name) {
      const TensorView* view = file->find(name);
      std::vector<double> out;
      for (std::int64_t i = 0; i < 8; ++i)
        out.push_back(element_as_double(view->bytes.data(), view->info.dtype, i));
      return out;
    };
    const double high = &rank == result->cases[0].ranks.data() ? 2 : 3;
    for (const double each : values("index")) EXPECT_TRUE(each >= -3 && each < high) << each;
    EXPECT_EQ(values("steps"), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(values("ones"), std::vector<double>(8, 1.0));
    EXPECT_EQ(values("zeros"), std::vector<double>(8, 0.0));
    for (const double each : values("same")) EXPECT_TRUE(each >= -0.25 && each < 0.25) << each;
    if (same.empty()) same = values("same");
    EXPECT_EQ(values("same"), same);
  }
}

TEST_F(ReferenceFaults, TheMachinesFaultsAreNotTheProblems) {
  ::setenv("ECHOLO_PYTHON", "/nonexistent/python", 1);
  const auto result = run("def solution(x):\n    return x * 2\n");
  ::unsetenv("ECHOLO_PYTHON");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kMachine);
}

}  // namespace
}  // namespace echolo
