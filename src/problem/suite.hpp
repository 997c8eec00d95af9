// Where EcholoKernel's own files are, and the problems that come with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "problem/problem.hpp"

namespace echolo {

// The folder that holds problems/, kernels/, python/ and include/: ECHOLO_HOME where it is set, else the
// nearest folder above this executable that has them, else the source tree it was built from. Error
// (kMachine): none.
Result<std::string> echolo_home();

// Names of the suite's problems (folders of problems/ with a problem.toml), sorted.
Result<std::vector<std::string>> suite_names();
// Every problem of the suite; the first broken one is an error.
Result<std::vector<Problem>> load_suite();
// A problem of the suite by name, or any problem by the path of its directory. Errors (kUsage) offer near
// names.
Result<Problem> find_problem(const std::string& name_or_directory);
// What find_problem() will find this problem by from anywhere: its name where it is the suite's, else its
// directory.
std::string lasting_name(const Problem& problem);

}  // namespace echolo
