#include "judge/verdict.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace echolo::judge {
namespace {

using nlohmann::json;

// JSON has no infinity; a difference that is no number is null, and `detail` says why.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json params_json(const Params& params) {
  json out = json::object();
  for (const ParamValue& param : params) out[param.name] = param.value;
  return out;
}

json schedule_json(const Schedule& schedule) {
  return {{"policy", schedule.policy}, {"seed", schedule.seed}};
}

json replay_json(const Replay& replay) {
  json out = {{"world", replay.world},
              {"seed", replay.seed},
              {"policy", replay.schedule.policy},
              {"policy_seed", replay.schedule.seed}};
  if (!replay.size.empty()) {
    out["size"] = replay.size;
    out["params"] = params_json(replay.params);
  }
  return out;
}

json finding_json(const JudgedFinding& judged) {
  json out = judged.finding;
  out["replay"] = replay_json(judged.replay);
  out["switches"] = judged.switches;
  return out;
}

// Seed by seed, the schedules under which it ran.
json schedules_json(const Verdict& verdict) {
  json out = json::array();
  if (verdict.seeds.empty()) return out;
  const std::size_t per_seed = verdict.schedules.size() / verdict.seeds.size();
  for (std::size_t i = 0; i < verdict.schedules.size(); ++i) {
    const Schedule& schedule = verdict.schedules[i];
    out.push_back(
        {{"seed", verdict.seeds[i / per_seed]}, {"policy", schedule.policy}, {"policy_seed", schedule.seed}});
  }
  return out;
}

json row_json(const CheckRow& row) {
  json out = {{"size", row.size},
              {"seed", row.seed},
              {"schedule", schedule_json(row.schedule)},
              {"call", row.call},
              {"mode", row.graph ? "graph" : "eager"},
              {"rank", row.rank},
              {"output", row.output},
              {"max_error", number(row.max_error)},
              {"allowed", number(row.allowed)},
              {"ok", row.ok}};
  if (!row.detail.empty()) out["detail"] = row.detail;
  return out;
}

}  // namespace

bool is_good(const Verdict& verdict) { return verdict.status == "correct"; }

int exit_code_of(const Verdict& verdict) { return is_good(verdict) ? 0 : verdict.status == "infra" ? 3 : 1; }

namespace {
json model_json(const TimeModel& model) {
  return {{"topology", model.topology},
          {"roofline_us", model.roofline_us},
          {"roofline", model.roofline},
          {"bottleneck", model.bottleneck},
          {"bottleneck_share", model.bottleneck_share},
          {"exposed_share", model.exposed_share},
          {"longest_wait_us", model.longest_wait_us},
          {"longest_wait_at", model.longest_wait_at},
          {"link_bytes", model.link_bytes},
          {"words", model.words}};
}

}  // namespace

json to_json(const Verdict& verdict) {
  json out = {{"status", verdict.status},
              {"message", verdict.message},
              {"candidate", verdict.candidate},
              {"label", verdict.label},
              {"path", verdict.path},
              {"world", verdict.world},
              {"device", verdict.device},
              {"fabric", verdict.fabric},
              {"suppressed", verdict.suppressed},
              {"speedup", nullptr},
              {"times", json::array()},
              {"findings", json::array()},
              {"gates", verdict.gates},
              {"checks", json::array()},
              {"stages", json::array()},
              {"registers", verdict.registers}};
  out["schedules"] = schedules_json(verdict);
  out["timeout_ms"] = verdict.timeout_ms;
  if (!verdict.minimised.empty()) out["minimised"] = verdict.minimised;
  if (verdict.minimise_runs > 0)
    out["minimisation"] = {{"runs", verdict.minimise_runs}, {"out_of_time", verdict.minimise_cut}};
  out["origin"] = verdict.origin;
  if (!verdict.problem_folder.empty()) out["problem_folder"] = verdict.problem_folder;
  if (!verdict.knobs.empty()) out["knobs"] = verdict.knobs;
  if (!verdict.arguments.empty()) out["arguments"] = verdict.arguments;
  if (verdict.failed) out["replay"] = replay_json(*verdict.failed);
  out["problem"] = verdict.problem.empty() ? json(nullptr) : json(verdict.problem);
  if (!verdict.id.empty()) out["id"] = verdict.id;
  if (!verdict.dtype.empty()) out["dtype"] = verdict.dtype;
  for (const JudgedFinding& finding : verdict.findings) out["findings"].push_back(finding_json(finding));
  for (const CheckRow& row : verdict.checks) out["checks"].push_back(row_json(row));
  for (const StageTime& stage : verdict.stages) {
    out["stages"].push_back(
        {{"name", stage.name}, {"seconds", stage.seconds}, {"cached", stage.cached}, {"log", stage.log}});
  }
  json sizes = json::array();
  for (const ModelledSize& size : verdict.modelled) {
    json one = {{"size", size.size},
                {"params", params_json(size.params)},
                {"calls_us", size.call_us},
                {"us_median", size.median_us},
                {"warp_instructions", size.warp_instructions}};
    if (size.model) one.update(model_json(*size.model));
    sizes.push_back(std::move(one));
  }
  out["modelled"] = {{"provenance", "modelled"}, {"sizes", std::move(sizes)}};
  json pes = json::array();
  for (const PeOutput& pe : verdict.pes)
    pes.push_back({{"pe", pe.pe}, {"end", pe.end}, {"output", pe.output}});
  out["pes"] = std::move(pes);
  return out;
}

}  // namespace echolo::judge
