// The litmus tests of this repository (litmus/): each says in its header whether its condition holds, whether
// it can hang, and all its outcomes. Both the machine and the axioms are held to that.
#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "litmus/axioms.hpp"
#include "litmus/suite.hpp"

namespace echolo::litmus {
namespace {

// The text between `"name: ` and the closing quote, or "missing".
std::string header_field(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\"" + name + ": ");
  if (at == std::string::npos) return "missing";
  const std::size_t begin = at + name.size() + 3;
  return text.substr(begin, text.find('"', begin) - begin);
}

std::set<std::string> written(const Program& program, const Answer& answer) {
  std::set<std::string> all;
  for (const auto& [values, count] : answer.outcomes) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < values.size(); ++i) {
      parts.push_back(program.observed[i].name + "=" + std::to_string(values[i]));
    }
    all.insert(join(parts, " "));
  }
  return all;
}

TEST(OwnTests, AreAsTheySay) {
  const Result<std::vector<std::string>> files = litmus_files({std::string(ECHOLO_SOURCE_DIR) + "/litmus"});
  ASSERT_TRUE(files.ok()) << files.error().render();
  EXPECT_GE(files->size(), 40U);
  for (const std::string& file : *files) {
    SCOPED_TRACE(file);
    const Result<std::string> text = read_file(file);
    ASSERT_TRUE(text.ok());
    const Result<Program> program = parse_litmus(*text, file);
    ASSERT_TRUE(program.ok()) << program.error().render();
    std::set<std::string> expected;
    for (const std::string& each : split(header_field(*text, "outcomes"), ';')) {
      if (!trim(each).empty()) expected.emplace(trim(each));
    }
    const std::string says = header_field(*text, "expect");
    const Answer machine = explore(*program);
    EXPECT_TRUE(machine.complete) << machine.why_incomplete;
    EXPECT_EQ(written(*program, machine), expected);
    EXPECT_EQ(std::string(machine.holds ? "holds" : "does not hold") + ", " +
                  (machine.terminates ? "ends" : "can hang"),
              says);
    const Answer axioms = enumerate(*program);
    EXPECT_TRUE(axioms.complete) << axioms.why_incomplete;
    EXPECT_EQ(written(*program, axioms), expected);
  }
}

}  // namespace
}  // namespace echolo::litmus
