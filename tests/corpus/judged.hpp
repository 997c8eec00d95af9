// A corpus case given to the `echolo` binary, and its verdict held against the case's comments.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "case_file.hpp"

namespace echolo::corpus {

// `echolo check` or `echolo sanitize` of the case, with further words before the program's arguments.
Command command_for(const CaseFile& test, const std::string& fabric, const std::vector<std::string>& further);

// All that is not as the case's comments say, one a line; empty: nothing.
std::string faults_of(const CaseFile& test, const Outcome& outcome);

// A verdict's JSON without what may differ between two equal questions.
nlohmann::json without_times(nlohmann::json verdict);

// "deadlock/missing_block.cu".
std::string short_name(const std::filesystem::path& path);

// A positive number from the environment; `otherwise` where it is not set.
int number_from(const char* variable, int otherwise);

}  // namespace echolo::corpus
