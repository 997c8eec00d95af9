// Verdicts kept in the store under an id, with what it takes to come to them again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "judge/candidate.hpp"
#include "judge/check.hpp"
#include "judge/sanitize.hpp"
#include "judge/verdict.hpp"
#include "problem/problem.hpp"
#include "store/store.hpp"

namespace echolo::judge {

// What decides a check, apart from problem, candidate and the store's folders.
nlohmann::json options_json(const CheckOptions& options);
// Error (kMachine): damaged.
Result<CheckOptions> check_options_from(const nlohmann::json& json);

// Gives the verdict its id, which follows from the question alone, and keeps it with the candidate's source.
// Errors (kMachine): the store cannot be written.
Status keep_check(store::Store& store, const Problem& problem, const Candidate& candidate,
                  const CheckOptions& options, Verdict& verdict);
Status keep_sanitize(store::Store& store, const std::string& path, const SanitizeOptions& options,
                     Verdict& verdict);

}  // namespace echolo::judge
