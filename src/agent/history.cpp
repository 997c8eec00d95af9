#include "agent/history.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "judge/invocation.hpp"

namespace echolo::agent {
namespace {

using nlohmann::json;

// What the store holds as text is JSON that we wrote; damaged text is shown as it is.
json parsed(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

json run_json(const store::RunInfo& run) {
  return {{"id", run.id},
          {"command", run.command},
          {"problem", run.problem},
          {"world", run.world},
          {"status", run.status},
          {"created", run.created},
          {"finished", run.finished.empty() ? json(nullptr) : json(run.finished)},
          {"iterations", run.n_iterations},
          {"judged", run.n_judged},
          {"options", parsed(run.options)}};
}

std::string winner_of(const std::string& summary) {
  const json value = json::parse(summary, nullptr, false);
  if (!value.is_object() || !value.contains("winner") || !value["winner"].is_object()) return {};
  return value["winner"].value("label", "");
}

}  // namespace

json runs_json(const std::vector<store::RunInfo>& runs) {
  json list = json::array();
  for (const store::RunInfo& run : runs) list.push_back(run_json(run));
  return {{"runs", std::move(list)}};
}

std::string render_runs(const std::vector<store::RunInfo>& runs) {
  if (runs.empty()) return "no runs yet; echolo optimize ag_gemm --world 4 makes one\n";
  std::string out = fmt::format("{:<9} {:<12} {:<14} {:>5} {:>8}  {:<21} {}\n", "run", "status", "problem",
                                "world", "judged", "created", "winner");
  for (const store::RunInfo& run : runs) {
    out += fmt::format("{:<9} {:<12} {:<14} {:>5} {:>8}  {:<21} {}\n", run.id, run.status, run.problem,
                       run.world, fmt::format("{}/{}", run.n_judged, run.n_iterations), run.created,
                       winner_of(run.summary));
  }
  return out;
}

Result<RunHistory> history_of(const store::Store& store, const std::string& id) {
  Result<store::RunInfo> info = store.run(id);
  if (!info) return info.error();
  Result<std::vector<store::Iteration>> iterations = store.iterations(info->id);
  if (!iterations) return iterations.error();
  Result<std::vector<store::Event>> events = store.events(info->id);
  if (!events) return events.error();
  return RunHistory{std::move(*info), std::move(*iterations), std::move(*events)};
}

json to_json(const RunHistory& history) {
  json out = run_json(history.info);
  json iterations = json::array();
  for (const store::Iteration& one : history.iterations) {
    iterations.push_back({{"number", one.number},
                          {"candidate", one.candidate},
                          {"label", one.label},
                          {"status", one.status},
                          {"verdict", one.verdict.empty() ? json(nullptr) : json(one.verdict)},
                          {"detail", parsed(one.detail)}});
  }
  json events = json::array();
  for (const store::Event& one : history.events) {
    events.push_back({{"id", one.id}, {"time", one.time}, {"kind", one.kind}, {"data", parsed(one.data)}});
  }
  out["iterations"] = std::move(iterations);
  out["events"] = std::move(events);
  out["summary"] = history.info.summary.empty() ? json(nullptr) : parsed(history.info.summary);
  return out;
}

std::string render(const RunHistory& history) {
  const store::RunInfo& run = history.info;
  std::string out = fmt::format("run {}: {} of {} on {} PEs, {}\n  created {}{}\n", run.id, run.command,
                                run.problem, run.world, run.status, run.created,
                                run.finished.empty() ? "" : ", finished " + run.finished);
  const std::string winner = winner_of(run.summary);
  if (!winner.empty()) out += "  winner: " + winner + "\n";
  out += "candidates\n";
  for (const store::Iteration& one : history.iterations) {
    out += fmt::format("  {:>3} {:<20} {}\n", one.number, one.status, one.label);
  }
  out += "events\n";
  for (const store::Event& one : history.events) out += fmt::format("  {} {}\n", one.time, one.kind);
  if (run.status == "interrupted" || run.status == "stopped")
    out += "next: " + judge::echolo_command() + " runs resume " + run.id + "\n";
  return out;
}

}  // namespace echolo::agent
