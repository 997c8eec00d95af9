#include <chrono>
#include <nlohmann/json.hpp>

#include "problem/safetensors.hpp"
#include "problem/suite.hpp"
#include "support.hpp"

namespace echolo {
namespace {

ReferenceRequest request_for(const Problem& problem, int world, const std::string& size) {
  ReferenceRequest request;
  request.world = world;
  request.cache_directory = test_cache();
  const auto params = problem.size(size, world);
  EXPECT_TRUE(params.ok()) << params.error().render();
  request.cases = {{*params, problem.dtypes.front(), 1, 0}};
  return request;
}

std::vector<double> values(const std::string& path, const std::string& name) {
  const auto file = Safetensors::read(path);
  EXPECT_TRUE(file.ok());
  const TensorView* tensor = file->find(name);
  EXPECT_NE(tensor, nullptr);
  std::vector<double> out;
  for (std::int64_t i = 0; i < tensor->info.elements(); ++i) {
    out.push_back(element_as_double(tensor->bytes.data(), tensor->info.dtype, i));
  }
  return out;
}

TEST(RarerReference, EveryProblemOfTheSuiteRunsInBothDtypes) {
  const auto suite = load_suite();
  ASSERT_TRUE(suite.ok()) << suite.error().render();
  ASSERT_GE(suite->size(), 4U);
  for (const Problem& problem : *suite) {
    ReferenceRequest request = request_for(problem, 2, "smoke");
    request.cases.push_back(request.cases.front());
    request.cases.back().dtype = problem.dtypes.back();
    const auto run = run_reference(problem, request);
    ASSERT_TRUE(run.ok()) << problem.name << "\n" << run.error().render();
    ASSERT_EQ(run->cases.size(), 2U);
    for (const CaseResult& one : run->cases) {
      ASSERT_EQ(one.ranks.size(), 2U);
      for (std::size_t output = 0; output < problem.outputs.size(); ++output) {
        for (const RankResult& rank : one.ranks) {
          const auto reference = Safetensors::read(rank.reference_path);
          const auto oracle = Safetensors::read(rank.oracle_path);
          ASSERT_TRUE(reference.ok() && oracle.ok());
          const std::string& name = problem.outputs[output].name;
          const auto verdict = compare(*reference->get(name), *oracle->get(name), one.noise[output]);
          ASSERT_TRUE(verdict.ok()) << verdict.error().render();
          EXPECT_TRUE(verdict->ok) << describe(*verdict, reference->get(name)->info);
        }
      }
      EXPECT_EQ(one.ranks[0].collectives.size(), 1U);
    }
    EXPECT_FALSE(render(problem, *run).empty());
    EXPECT_EQ(to_json(*run)["cases"].size(), 2U);
  }
}

TEST(Reference, ComputesGatherThenMultiplyAndSaysWhatItIssued) {
  const auto problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  const auto run = run_reference(*problem, request_for(*problem, 2, "smoke"));
  ASSERT_TRUE(run.ok()) << run.error().render();
  const CaseResult& one = run->cases[0];
  // M = 32, N = 32, K = 32.
  const std::vector<double> a[2] = {values(one.ranks[0].inputs_path, "a"),
                                    values(one.ranks[1].inputs_path, "a")};
  EXPECT_NE(a[0], a[1]);
  for (int rank = 0; rank < 2; ++rank) {
    const auto b = values(one.ranks[static_cast<std::size_t>(rank)].inputs_path, "b");
    const auto c = values(one.ranks[static_cast<std::size_t>(rank)].oracle_path, "c");
    for (std::size_t m = 0; m < 32; ++m) {
      for (std::size_t n = 0; n < 32; ++n) {
        double sum = 0;
        for (std::size_t k = 0; k < 32; ++k) sum += a[m / 16][m % 16 * 32 + k] * b[k * 32 + n];
        ASSERT_NEAR(c[m * 32 + n], sum, 1e-9);
      }
    }
  }
  const Collective& call = one.ranks[1].collectives.at(0);
  EXPECT_EQ(call.op, "all_gather_into_tensor");
  EXPECT_EQ(call.dtype, "bf16");
  EXPECT_EQ(call.bytes, 32 * 32 * 2);
  EXPECT_EQ(call.group_size, 2);
  EXPECT_EQ(call.line, 8);
  EXPECT_EQ(one.ranks[0].flops, 2 * 32 * 32 * 32);
  EXPECT_FALSE(one.noise[0].exact);
  EXPECT_GT(one.noise[0].relative, 0);
}

TEST(RarerReference, CopiesAreExactAndCallsAndSeedsGiveOtherInputs) {
  const auto problem = find_problem("all_to_all");
  ASSERT_TRUE(problem.ok());
  ReferenceRequest request = request_for(*problem, 4, "smoke");
  request.cases.push_back(request.cases[0]);
  request.cases[1].call = 1;
  request.cases.push_back(request.cases[0]);
  request.cases[2].seed = 2;
  const auto run = run_reference(*problem, request);
  ASSERT_TRUE(run.ok()) << run.error().render();
  EXPECT_TRUE(run->cases[0].noise[0].exact);
  const auto x = [&](std::size_t i, std::size_t rank) {
    return values(run->cases[i].ranks[rank].inputs_path, "x");
  };
  EXPECT_NE(x(0, 0), x(1, 0));
  EXPECT_NE(x(0, 0), x(2, 0));
  EXPECT_NE(x(0, 0), x(0, 3));
}

TEST(Reference, TheSecondTimeComesFromTheCache) {
  const auto problem = find_problem("gemm_rs");
  ASSERT_TRUE(problem.ok());
  ReferenceRequest request = request_for(*problem, 2, "smoke");
  request.cases[0].seed = 77;
  const auto first = run_reference(*problem, request);
  ASSERT_TRUE(first.ok()) << first.error().render();
  EXPECT_FALSE(first->cases[0].cached);
  const auto second = run_reference(*problem, request);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->cases[0].cached);
  EXPECT_LT(second->seconds, 1.0);
  EXPECT_EQ(second->cases[0].ranks[0].collectives[0].op, "reduce_scatter_tensor");
  EXPECT_EQ(values(first->cases[0].ranks[1].oracle_path, "c"),
            values(second->cases[0].ranks[1].oracle_path, "c"));
  // A damaged entry is made anew.
  write(std::filesystem::path(second->cases[0].ranks[0].inputs_path).parent_path() / "case.json", "{");
  const auto third = run_reference(*problem, request);
  ASSERT_TRUE(third.ok()) << third.error().render();
  EXPECT_FALSE(third->cases[0].cached);
}

TEST(RarerReference, AWholeChecksCasesTakeSeconds) {
  const auto problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  ReferenceRequest request = request_for(*problem, 4, "smoke");
  request.cases.clear();
  for (std::uint64_t seed = 100; seed < 103; ++seed) {
    const auto drawn = problem->draw_size(seed, 4);
    for (const Params& params : {*problem->size("smoke", 4), *problem->size("small", 4), *drawn}) {
      for (int call = 0; call < 6; ++call) request.cases.push_back({params, DType::kBf16, seed, call});
    }
  }
  const auto run = run_reference(*problem, request);
  ASSERT_TRUE(run.ok()) << run.error().render();
  EXPECT_EQ(run->cases.size(), 54U);
  RecordProperty("seconds", std::to_string(run->seconds));
  EXPECT_LT(run->seconds, 120) << "8 s on an idle machine";
}

}  // namespace
}  // namespace echolo
