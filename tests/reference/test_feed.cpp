// The reference beside other work.
#include "base/text.hpp"
#include "problem/suite.hpp"
#include "reference/feed.hpp"
#include "support.hpp"

namespace echolo {
namespace {

ReferenceRequest calls(const Problem& problem, const std::string& cache, int n) {
  ReferenceRequest request;
  request.world = 2;
  request.cache_directory = cache;
  for (int call = 0; call < n; ++call)
    request.cases.push_back({*problem.size("smoke", 2), problem.dtypes.front(), 3, call});
  return request;
}

// One Python: cases come in order while later ones are made, a stop keeps those that are done, and what a
// fault comes after is still good.
TEST(ReferenceFeed, HandsOnEachCaseAsSoonAsItIsDone) {
  const Folder folder;
  write(folder / "tiny/problem.toml", kSmallToml);
  // The third call never returns.
  write(folder / "tiny/reference.py",
        "import time\nn = 0\ndef solution(x):\n    global n\n    n += 1\n"
        "    while n > 4:\n        time.sleep(1)\n    return x * 2\n");
  const auto problem = load_problem(folder / "tiny");
  ASSERT_TRUE(problem.ok()) << problem.error().render();
  ReferenceFeed feed(*problem, calls(*problem, folder / "cache", 4));
  const auto first = feed.wait_for(0);
  ASSERT_TRUE(first.ok()) << first.error().render();
  EXPECT_EQ((*first)->request.call, 0);
  EXPECT_FALSE((*first)->cached);
  const auto second = feed.wait_for(1);
  ASSERT_TRUE(second.ok()) << second.error().render();
  EXPECT_TRUE(std::filesystem::exists((*second)->ranks[1].oracle_path));
  feed.stop();
  EXPECT_FALSE(feed.all_cached());
  const auto third = feed.wait_for(2);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().kind, ErrorKind::kInterrupted) << third.error().render();
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache/reference"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tmp-")) << entry.path();
  // The finished ones are in the cache: no Python is needed for them.
  const auto again = run_reference(*problem, calls(*problem, folder / "cache", 2));
  ASSERT_TRUE(again.ok()) << again.error().render();
  EXPECT_TRUE(again->cases[0].cached && again->cases[1].cached);
}

TEST(ReferenceFeed, AFaultIsThatOfEveryCaseItKeptFromBeingMade) {
  const auto problem = find_problem("all_reduce");
  ASSERT_TRUE(problem.ok());
  ReferenceFeed feed(*problem, calls(*problem, "/proc/echolo", 2));
  for (const std::size_t index : {1U, 0U}) {
    const auto none = feed.wait_for(index);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().kind, ErrorKind::kMachine) << none.error().render();
  }
}

}  // namespace
}  // namespace echolo
