// docs/ptx-coverage.md: generated from the lists of forms and from what the virtual node says to each of
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/text.hpp"
#include "ptx_forms.hpp"

namespace echolo::vgpu {
namespace {

using ptx_forms::Line;
using ptx_forms::Section;

const std::string kSource = ECHOLO_SOURCE_DIR;

// What tells the forms of a line apart is said by the pattern; the reason is said once.
std::string shortened(const std::string& reason) {
  std::string text = reason.substr(0, reason.find(" (PTX line"));
  text = text.substr(0, text.find(" (`"));
  std::replace(text.begin(), text.end(), '|', '/');
  return text.size() > 110 ? text.substr(0, 107) + "..." : text;
}

struct Count {
  std::size_t executed = 0, refused = 0;
};

std::string row(const std::string& pattern, std::size_t n, const std::string& status) {
  std::string cell;  // a bar in a table must be escaped
  for (const char c : pattern) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return "| `" + cell + "` | " + std::to_string(n) + " | " + status + " |\n";
}

std::string rows_of(const Line& line, Count& count) {
  std::string rows;
  std::map<std::string, std::vector<std::string>> refused;
  std::size_t executed = 0;
  for (const std::string& form : line.forms) {
    const std::string reason = ptx_forms::refusal(form);
    if (reason.empty())
      ++executed;
    else
      refused[shortened(reason)].push_back(form);
  }
  count.executed += executed;
  count.refused += line.forms.size() - executed;
  if (executed > 0) rows += row(line.pattern, executed, "executed");
  if (executed == line.forms.size()) return rows;
  if (executed == 0) {
    rows += row(line.pattern, line.forms.size(), "refused: " + refused.begin()->first);
    return rows;
  }
  for (const auto& [reason, forms] : refused) {
    for (const std::string& form : forms) rows += row(form, 1, "refused: " + reason);
  }
  return rows;
}

std::string report() {
  std::string body;
  Count all;
  for (const Section& section : ptx_forms::read_lists()) {
    Count count;
    std::string rows;
    for (const Line& line : section.lines) rows += rows_of(line, count);
    all.executed += count.executed;
    all.refused += count.refused;
    body += "\n## " + section.title + "\n\n" + std::to_string(count.executed) + " executed, " +
            std::to_string(count.refused) + " refused. Tests: `" + section.test +
            "`.\n\n| form | forms | status |\n|---|---|---|\n" + rows;
  }
  return "# PTX coverage for sm_90a\n\n"
         "Generated from `tests/vgpu/ptx_forms/*.txt` by the test `PtxCoverage.PageIsCurrent` of "
         "`test_vgpu`; with\n"
         "`ECHOLO_UPDATE_DOCS=1` in the environment that test writes this page. `(a|b|)` stands for each of "
         "its\n"
         "alternatives, `{%r1..4}` for a vector of registers. *Executed*: the form decodes and runs. "
         "*Refused*: a\n"
         "kernel that has it is refused when its module is loaded, with the source line and this reason.\n\n"
         "In all " +
         std::to_string(all.executed) + " forms executed, " + std::to_string(all.refused) + " refused.\n" +
         body;
}

TEST(PtxCoverage, PageIsCurrent) {
  const std::string path = kSource + "/docs/ptx-coverage.md";
  const std::string generated = report();
  if (std::getenv("ECHOLO_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << generated;
    return;
  }
  const Result<std::string> committed = read_file(path);
  ASSERT_TRUE(committed.ok());
  EXPECT_TRUE(*committed == generated)
      << "docs/ptx-coverage.md is not what the lists of forms and the virtual node give today; "
         "ECHOLO_UPDATE_DOCS=1 build/tests/test_vgpu --gtest_filter=PtxCoverage.PageIsCurrent writes it";
}

TEST(PtxCoverage, EveryTestNamedExists) {
  for (const Section& section : ptx_forms::read_lists()) {
    EXPECT_TRUE(std::filesystem::exists(kSource + "/" + section.test)) << section.test;
    EXPECT_FALSE(section.lines.empty()) << section.title;
  }
}

// Every form of the instruction table is in some list.
TEST(PtxCoverage, ListsCoverTheInstructionTable) {
  static constexpr std::string_view kPrefixes[] = {
#define ECHOLO_PTX_FORM(prefix, modifiers, min_types, max_types, operands) prefix,
#include "ptx/forms.def"
#undef ECHOLO_PTX_FORM
  };
  std::set<std::string> mnemonics;
  for (const Section& section : ptx_forms::read_lists()) {
    for (const Line& line : section.lines) {
      for (const std::string& form : line.forms) mnemonics.insert(form.substr(0, form.find(' ')));
    }
  }
  for (const std::string_view prefix : kPrefixes) {
    const bool listed = std::ranges::any_of(mnemonics, [&](const std::string& text) {
      return text == prefix || text.starts_with(std::string(prefix) + ".");
    });
    EXPECT_TRUE(listed) << prefix << " is in no list of tests/vgpu/ptx_forms";
  }
}

// No form is listed twice.
TEST(PtxCoverage, FormsAreListedOnce) {
  std::set<std::string> seen;
  for (const Section& section : ptx_forms::read_lists()) {
    for (const Line& line : section.lines) {
      for (const std::string& form : line.forms) EXPECT_TRUE(seen.insert(form).second) << form;
    }
  }
}

}  // namespace
}  // namespace echolo::vgpu
