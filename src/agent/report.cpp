// The two forms of an optimisation's report.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/optimize.hpp"
#include "base/text.hpp"
#include "judge/invocation.hpp"

namespace echolo::agent {
namespace {

using nlohmann::json;

constexpr const char* kGreen = "\x1b[1;32m";
constexpr const char* kRed = "\x1b[1;31m";
constexpr const char* kPlain = "\x1b[0m";

json knobs_json(const judge::Knobs& knobs) {
  json out = json::object();
  for (const judge::KnobValue& knob : knobs) out[knob.name] = knob.value;
  return out;
}

json attempt_json(const Attempt& attempt) {
  json out = {{"iteration", attempt.iteration},
              {"label", attempt.label},
              {"candidate", attempt.candidate},
              {"source", attempt.source},
              {"knobs", knobs_json(attempt.knobs)},
              {"status", attempt.status},
              {"message", attempt.message},
              {"verdict", attempt.verdict},
              {"reused", attempt.reused},
              {"modelled_us", attempt.status == "correct" ? json(attempt.modelled_us) : json(nullptr)}};
  if (attempt.has_cost) {
    out["estimate"] = {{"provenance", "modelled"},
                       {"us", attempt.cost.microseconds},
                       {"link_bytes", attempt.cost.link_bytes},
                       {"messages", attempt.cost.messages},
                       {"issue_slots", attempt.cost.issue_slots},
                       {"waits", attempt.cost.waits}};
  }
  return out;
}

std::string why_fell(const Attempt& attempt, const OptimizeReport& report) {
  if (report.winner && &report.attempts[*report.winner] == &attempt) return "winner";
  if (attempt.status != "correct") {
    std::string why = attempt.status + (attempt.message.empty() ? "" : ": " + printable(attempt.message));
    constexpr std::size_t kLong = 100;
    if (why.size() > kLong) why = why.substr(0, kLong) + "...";
    return why;
  }
  if (!report.winner) return "not confirmed in a clean process";
  const double best = report.attempts[*report.winner].modelled_us;
  if (best <= 0) return "correct";
  return fmt::format("correct, {:.2f} times the winner's modelled time", attempt.modelled_us / best);
}

std::string check_command(const OptimizeReport& report, const Attempt& attempt) {
  std::string out = fmt::format("{} check {} {} --world {}", judge::echolo_command(), report.problem,
                                attempt.source, report.world);
  for (const judge::KnobValue& knob : attempt.knobs)
    out += fmt::format(" --knob {}={}", knob.name, knob.value);
  return out;
}

}  // namespace

json to_json(const OptimizeReport& report) {
  json out = {{"run", report.run},
              {"problem", report.problem},
              {"world", report.world},
              {"dtype", report.dtype},
              {"fabric", report.fabric},
              {"status", report.winner ? "done" : "failed"},
              {"settings", report.n_settings},
              {"dropped", report.n_dropped},
              {"seconds", report.seconds},
              {"winner", nullptr},
              {"attempts", json::array()}};
  json params = json::object();
  for (const ParamValue& param : report.target.params) params[param.name] = param.value;
  out["target"] = {{"size", report.target.name}, {"params", std::move(params)}};
  for (const Attempt& attempt : report.attempts) out["attempts"].push_back(attempt_json(attempt));
  if (report.winner) {
    const Attempt& best = report.attempts[*report.winner];
    out["winner"] = attempt_json(best);
    out["winner"]["evidence"] = report.winner_evidence;
    out["winner"]["verdict"] = json::parse(report.winner_verdict, nullptr, false);
  }
  return out;
}

std::string render(const OptimizeReport& report, bool colour) {
  std::string out;
  const auto paint = [&](const char* code, const std::string& text) {
    return colour ? code + text + kPlain : text;
  };
  if (report.winner) {
    const Attempt& best = report.attempts[*report.winner];
    out += paint(kGreen, "winner") + ": " + best.label + "\n";
    out += fmt::format("  for {}, {} PEs, {}, virtual node ({})\n", report.problem, report.world,
                       report.dtype, report.fabric);
    out += fmt::format("  evidence: {} jobs (sizes x seeds x schedules); {}\n", report.n_jobs,
                       report.winner_evidence);
    out += fmt::format("  modelled: {:.2f} us a call at {} ({}); a model's time, not a measurement\n",
                       best.modelled_us, report.target.name, params_text(report.target.params));
  } else {
    out += paint(kRed, "no winner") +
           fmt::format(": nothing correct was found for {} on {} PEs\n", report.problem, report.world);
  }
  out += fmt::format("tried ({} settings, {} break a constraint, {} judged; times are modelled)\n",
                     report.n_settings, report.n_dropped, report.attempts.size());
  out += fmt::format("  {:>3} {:>10} {:>10}  {}\n", "#", "estimate", "node", "candidate");
  for (const Attempt& attempt : report.attempts) {
    const std::string estimate = attempt.has_cost ? fmt::format("{:.2f} us", attempt.cost.microseconds) : "-";
    const std::string node =
        attempt.status == "correct" ? fmt::format("{:.2f} us", attempt.modelled_us) : "-";
    out += fmt::format("  {:>3} {:>10} {:>10}  {}\n{:>28}{}\n", attempt.iteration, estimate, node,
                       attempt.label, "", why_fell(attempt, report));
  }
  out += fmt::format("run {} took {:.1f} s\nnext:\n", report.run, report.seconds);
  if (report.winner) out += "  " + check_command(report, report.attempts[*report.winner]) + "\n";
  out += "  " + judge::echolo_command() + " runs show " + report.run + "\n";
  return out;
}

}  // namespace echolo::agent
