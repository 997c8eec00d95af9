#include "judge/kept.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "problem/suite.hpp"

namespace echolo::judge {
namespace {

using nlohmann::json;

constexpr std::size_t kIdDigits = 12;

Status keep(store::Store& store, store::KeptVerdict kept, const std::string& source, Verdict& verdict) {
  verdict.id = kept.id;
  Result<std::string> text = store.put_artifact(source);
  if (!text) return text.error();
  kept.source = *text;
  Result<std::string> document = store.put_artifact(to_json(verdict).dump(1));
  if (!document) return document.error();
  kept.verdict = *document;
  kept.candidate = verdict.candidate;
  kept.status = verdict.status;
  return store.keep_verdict(kept);
}

std::string absolute(const std::string& path) {
  std::error_code code;
  const std::filesystem::path whole = std::filesystem::absolute(path, code);
  return code ? path : whole.lexically_normal().string();
}

}  // namespace

json options_json(const CheckOptions& options) {
  return {{"world", options.world},           {"dtype", options.dtype},
          {"sizes", options.sizes},           {"settings", options.settings},
          {"seeds", options.n_seeds},         {"seed", options.seed},
          {"schedules", options.n_schedules}, {"policy", options.policy},
          {"fabric", options.fabric},         {"timeout_ms", options.timeout.count()}};
}

Result<CheckOptions> check_options_from(const json& json) {
  try {
    CheckOptions options;
    json.at("world").get_to(options.world);
    json.at("dtype").get_to(options.dtype);
    json.at("sizes").get_to(options.sizes);
    json.at("settings").get_to(options.settings);
    json.at("seeds").get_to(options.n_seeds);
    json.at("seed").get_to(options.seed);
    json.at("schedules").get_to(options.n_schedules);
    options.policy = json.value("policy", "");
    json.at("fabric").get_to(options.fabric);
    options.timeout = std::chrono::milliseconds(json.at("timeout_ms").get<std::int64_t>());
    return options;
  } catch (const nlohmann::json::exception& fault) {
    return machine_error(std::string("options in the store are damaged: ") + fault.what());
  }
}

Status keep_check(store::Store& store, const Problem& problem, const Candidate& candidate,
                  const CheckOptions& options, Verdict& verdict) {
  Result<std::string> key = check_key(problem, candidate, options);
  if (!key) return key.error();
  store::KeptVerdict kept;
  kept.id = Sha256().field("check").field(*key).field(candidate.hash).hex().substr(0, kIdDigits);
  kept.command = "check";
  kept.subject = lasting_name(problem);
  json all = options_json(options);
  all["path"] = absolute(candidate.path);
  all["knobs"] = json::object();
  for (const KnobValue& knob : candidate.knobs) all["knobs"][knob.name] = knob.value;
  kept.options = all.dump();
  return keep(store, std::move(kept), candidate.text, verdict);
}

Status keep_sanitize(store::Store& store, const std::string& path, const SanitizeOptions& options,
                     Verdict& verdict) {
  const auto source = verdict.sources.find(path);
  if (source == verdict.sources.end()) return machine_error("the source of " + path + " is not at hand");
  const json all = {{"world", options.world},           {"arguments", options.arguments},
                    {"seeds", options.n_seeds},         {"seed", options.seed},
                    {"schedules", options.n_schedules}, {"policy", options.policy},
                    {"fabric", options.fabric},         {"timeout_ms", options.timeout.count()}};
  store::KeptVerdict kept;
  kept.subject = absolute(path);
  kept.id = Sha256()
                .field("sanitize")
                .field(kept.subject)
                .field(all.dump())
                .field(verdict.candidate)
                .hex()
                .substr(0, kIdDigits);
  kept.command = "sanitize";
  kept.options = all.dump();
  return keep(store, std::move(kept), source->second, verdict);
}

}  // namespace echolo::judge
