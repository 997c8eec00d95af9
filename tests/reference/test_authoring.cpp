#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "reference/authoring.hpp"
#include "support.hpp"

namespace echolo {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string lint(const std::string& directory) {
  const auto report = problem_lint(directory, test_cache());
  EXPECT_TRUE(report.ok()) << report.error().render();
  if (!report) return {};
  EXPECT_EQ(to_json(*report)["ok"], report->faults.empty());
  return render(*report);
}

TEST(Authoring, ANewProblemPassesLint) {
  const Folder folder;
  const auto written = problem_new(folder / "My-First", "", test_cache());
  ASSERT_TRUE(written.ok()) << written.error().render();
  EXPECT_EQ(written->size(), 2U);
  const std::string text = lint(folder / "My-First");
  EXPECT_TRUE(has(text, "my_first: good")) << text;
  EXPECT_TRUE(has(text, "issues 1 collective")) << text;
  // It never overwrites.
  const auto again = problem_new(folder / "My-First", "", test_cache());
  ASSERT_FALSE(again.ok());
  EXPECT_TRUE(has(again.error().message, "problem.toml exists already"));
}

TEST(RarerAuthoring, AFunctionOfAScriptBecomesAProblem) {
  const Folder folder;
  write(folder / "helpers.py", "def twice(x):\n    return x * 2\n");
  write(folder / "model.py", R"(import sys
import torch
import torch.distributed as dist
from helpers import twice

SCALE = 0.5
UNRELATED = sys.argv[99] if len(sys.argv) > 99 else None


def scaled(x):
    return twice(x) * SCALE


def row_parallel(x, weight, bias: torch.Tensor, world_size, eps=1e-5):
    partial = scaled(x @ weight)
    out = torch.empty(partial.shape[0] // world_size, partial.shape[1], dtype=x.dtype)
    dist.reduce_scatter_tensor(out, partial)
    return out + bias * eps


if __name__ == "__main__":
    raise SystemExit("must not run")
)");
  const auto written = problem_new(folder / "rows", folder / "model.py:row_parallel", test_cache());
  ASSERT_TRUE(written.ok()) << written.error().render();
  EXPECT_EQ(written->size(), 3U);
  const std::string reference = *read_file(folder / "rows/reference.py");
  EXPECT_TRUE(has(reference, "SCALE = 0.5")) << reference;
  EXPECT_FALSE(has(reference, "UNRELATED")) << reference;
  EXPECT_TRUE(has(reference, "solution = row_parallel")) << reference;
  const auto problem = load_problem(folder / "rows");
  ASSERT_TRUE(problem.ok()) << problem.error().render();
  ASSERT_EQ(problem->inputs.size(), 3U);
  EXPECT_EQ(problem->inputs[0].shape[1].expression.text(), "K");
  EXPECT_EQ(problem->inputs[2].shape[0].expression.text(), "N");
  EXPECT_EQ(problem->outputs[0].shape[0].expression.text(), "M / world");
  EXPECT_EQ(problem->outputs[0].shape[1].expression.text(), "N");
  EXPECT_TRUE(has(lint(folder / "rows"), "rows: good"));
}

TEST(RarerAuthoring, WhatCannotBecomeAProblemIsSaid) {
  const Folder folder;
  write(folder / "s.py",
        "def gather(x):\n    return [x]\ndef words(x):\n    return 'no'\ndef rest(*x):\n    return x\n");
  EXPECT_EQ(problem_new(folder / "p", folder / "s.py", test_cache()).error().hint,
            "write it as script.py:function");
  EXPECT_TRUE(
      has(problem_new(folder / "p", folder / "t.py:f", test_cache()).error().message, "there is no file"));
  EXPECT_EQ(problem_new(folder / "p", folder / "s.py:gathr", test_cache()).error().hint,
            "did you mean 'gather'?");
  EXPECT_TRUE(has(problem_new(folder / "p", folder / "s.py:rest", test_cache()).error().render(),
                  "s.py:5: rest() takes *"));
  const auto words = problem_new(folder / "p", folder / "s.py:words", test_cache());
  ASSERT_FALSE(words.ok());
  EXPECT_TRUE(has(words.error().render(), "words() does not return tensors")) << words.error().render();
  EXPECT_FALSE(std::filesystem::exists(folder / "p"));
}

TEST(RarerAuthoring, LintFindsAReferenceWithoutAFloat64Oracle) {
  const Folder folder;
  write(folder / "tiny/problem.toml", kSmallToml);
  write(folder / "tiny/reference.py", "def solution(x):\n    return x.float() * 2\n");
  const std::string text = lint(folder / "tiny");
  EXPECT_TRUE(has(text, "tiny/reference.py:1: float64 inputs give output 'y' as f32")) << text;
}

TEST(Authoring, LintShowsFaultsOfTheToml) {
  const Folder folder;
  write(folder / "tiny/problem.toml", std::string(kSmallToml) + "bund = 3\n");
  write(folder / "tiny/reference.py", "def solution(x):\n    return x * 2\n");
  const std::string text = lint(folder / "tiny");
  EXPECT_TRUE(has(text, "tiny/problem.toml:17:1: unknown key 'bund' in an output")) << text;
  EXPECT_TRUE(has(text, "did you mean 'bound'?")) << text;
  EXPECT_TRUE(has(lint(folder / "nowhere"), "there is no directory")) << text;
}

}  // namespace
}  // namespace echolo
