// Past and live runs, for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/store.hpp"

namespace echolo::agent {

nlohmann::json runs_json(const std::vector<store::RunInfo>& runs);
std::string render_runs(const std::vector<store::RunInfo>& runs);

struct RunHistory {
  store::RunInfo info;
  std::vector<store::Iteration> iterations;
  std::vector<store::Event> events;
};
Result<RunHistory> history_of(const store::Store& store, const std::string& id);
nlohmann::json to_json(const RunHistory& history);
std::string render(const RunHistory& history);

}  // namespace echolo::agent
