// Litmus files by the dozen: finding them, judging each, comparing with a table of expected results.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "litmus/explore.hpp"

namespace echolo::litmus {

enum class Model : std::uint8_t { kMachine, kAxioms };

struct SuiteOptions {
  Model model = Model::kMachine;
  ExploreLimits limits;
};

struct Judged {
  std::string file;
  Program program;
  Answer answer;
  double seconds = 0;
};

struct Suite {
  std::vector<Judged> tests;  // files that parsed, in the order given; a directory's sorted by name
};

// All .litmus files among `paths`, directories searched to their depths. Errors: a path that is not there, a
// directory without any.
Result<std::vector<std::string>> litmus_files(const std::vector<std::string>& paths);

Result<Judged> judge_file(const std::string& file, const SuiteOptions& options);

// A CSV of lines "file,0|1". A file of the suite is looked up by the longest name that ends its path.
struct Expected {
  std::map<std::string, bool> by_file;
  const bool* find(const std::string& file) const;  // null: not in the table
};
Result<Expected> load_expected(const std::string& file);

nlohmann::json to_json(const Judged& test);
std::string render(const Judged& test);  // outcomes and verdict, several lines

}  // namespace echolo::litmus
