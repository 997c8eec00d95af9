// JobSpec and JobResult as JSON: what run_job and echolo-node pass to each other.
#include <nlohmann/json.hpp>

#include "runtime/job.hpp"

namespace echolo::runtime {
namespace {

using nlohmann::json;

constexpr const char* kEnds[] = {"ok", "exit_code", "signal", "exception", "timeout", "killed"};

json calls_to_json(const std::vector<CallSpec>& calls) {
  json out = json::array();
  for (const CallSpec& call : calls) out.push_back(call.input_files);
  return out;
}

std::vector<CallSpec> calls_from_json(const json& in) {
  std::vector<CallSpec> out;
  for (const json& files : in) out.push_back({files.get<std::vector<std::string>>()});
  return out;
}

json candidate_to_json(const CandidateJob& job) {
  json outputs = json::array();
  for (const std::vector<OutputSpec>& of_pe : job.outputs) {
    json list = json::array();
    for (const OutputSpec& o : of_pe) {
      list.push_back({{"name", o.name}, {"dtype", static_cast<int>(o.dtype)}, {"shape", o.shape}});
    }
    outputs.push_back(std::move(list));
  }
  return {{"library", job.library},
          {"problem", job.problem},
          {"dtype", static_cast<int>(job.dtype)},
          {"params", job.params},
          {"inputs", job.inputs},
          {"outputs", std::move(outputs)},
          {"calls", calls_to_json(job.calls)},
          {"replays", calls_to_json(job.replays)},
          {"output_dir", job.output_dir}};
}

DType dtype_from(const json& in) {
  const int value = in.get<int>();
  if (value < 0 || value > static_cast<int>(DType::kF8E5M2)) throw std::invalid_argument("no such dtype");
  return static_cast<DType>(value);
}

CandidateJob candidate_from_json(const json& in) {
  CandidateJob job;
  job.library = in.at("library").get<std::string>();
  job.problem = in.at("problem").get<std::string>();
  job.dtype = dtype_from(in.at("dtype"));
  job.params = in.at("params").get<std::vector<std::pair<std::string, std::int64_t>>>();
  job.inputs = in.at("inputs").get<std::vector<std::string>>();
  for (const json& list : in.at("outputs")) {
    std::vector<OutputSpec> of_pe;
    for (const json& o : list) {
      of_pe.push_back({o.at("name").get<std::string>(), dtype_from(o.at("dtype")),
                       o.at("shape").get<std::vector<std::int64_t>>()});
    }
    job.outputs.push_back(std::move(of_pe));
  }
  job.calls = calls_from_json(in.at("calls"));
  job.replays = calls_from_json(in.at("replays"));
  job.output_dir = in.at("output_dir").get<std::string>();
  return job;
}

}  // namespace

void to_json(json& out, const JobSpec& spec) {
  out = {{"world", spec.world},
         {"seed", spec.seed},
         {"policy", spec.policy},
         {"policy_seed", spec.policy_seed},
         {"fabric", spec.fabric},
         {"timeout_ms", spec.timeout.count()},
         {"host_timeout_ms", spec.host_timeout.count()},
         {"output_limit", spec.output_limit},
         {"sandbox", spec.sandbox},
         {"check_races", spec.check_races},
         {"check_unwritten", spec.check_unwritten},
         {"is_candidate", spec.is_candidate},
         {"register_counts", spec.register_counts}};
  if (spec.is_candidate) {
    out["candidate"] = candidate_to_json(spec.candidate);
  } else {
    out["program"] = {{"executable", spec.program.executable},
                      {"arguments", spec.program.arguments},
                      {"env", spec.program.env}};
  }
}

void from_json(const json& in, JobSpec& spec) {
  spec.world = in.at("world").get<int>();
  spec.seed = in.at("seed").get<std::uint64_t>();
  spec.policy = in.at("policy").get<std::string>();
  spec.policy_seed = in.at("policy_seed").get<std::uint64_t>();
  spec.fabric = in.at("fabric").get<std::string>();
  spec.timeout = std::chrono::milliseconds(in.at("timeout_ms").get<std::int64_t>());
  spec.host_timeout = std::chrono::milliseconds(in.at("host_timeout_ms").get<std::int64_t>());
  spec.output_limit = in.at("output_limit").get<std::size_t>();
  spec.sandbox = in.at("sandbox").get<bool>();
  spec.check_races = in.at("check_races").get<bool>();
  spec.check_unwritten = in.at("check_unwritten").get<bool>();
  spec.is_candidate = in.at("is_candidate").get<bool>();
  spec.register_counts = in.at("register_counts").get<std::map<std::string, std::uint32_t>>();
  if (spec.is_candidate) {
    spec.candidate = candidate_from_json(in.at("candidate"));
  } else {
    const json& program = in.at("program");
    spec.program.executable = program.at("executable").get<std::string>();
    spec.program.arguments = program.at("arguments").get<std::vector<std::string>>();
    spec.program.env = program.at("env").get<std::map<std::string, std::string>>();
  }
}

void to_json(json& out, const JobResult& result) {
  json pes = json::array();
  for (const PeReport& pe : result.pes) {
    pes.push_back({{"end", kEnds[static_cast<int>(pe.end)]},
                   {"code", pe.code},
                   {"detail", pe.detail},
                   {"output", pe.output},
                   {"output_truncated", pe.output_truncated}});
  }
  out = {{"status", result.status},
         {"message", result.message},
         {"findings", result.findings},
         {"pes", std::move(pes)},
         {"modelled_ns", result.modelled_ns},
         {"call_modelled_ns", result.call_modelled_ns},
         {"warp_instructions", result.warp_instructions},
         {"lane_instructions", result.lane_instructions},
         {"seconds", result.seconds},
         {"device_seconds", result.device_seconds}};
}

void from_json(const json& in, JobResult& result) {
  result.status = in.at("status").get<std::string>();
  result.message = in.at("message").get<std::string>();
  result.findings = in.at("findings").get<std::vector<vgpu::Finding>>();
  result.pes.clear();
  for (const json& entry : in.at("pes")) {
    PeReport pe;
    const std::string end = entry.at("end").get<std::string>();
    for (int i = 0; i < 6; ++i) {
      if (end == kEnds[i]) pe.end = static_cast<PeEnd>(i);
    }
    pe.code = entry.at("code").get<int>();
    pe.detail = entry.at("detail").get<std::string>();
    pe.output = entry.at("output").get<std::string>();
    pe.output_truncated = entry.at("output_truncated").get<bool>();
    result.pes.push_back(std::move(pe));
  }
  result.modelled_ns = in.at("modelled_ns").get<std::uint64_t>();
  result.call_modelled_ns = in.at("call_modelled_ns").get<std::vector<std::uint64_t>>();
  result.warp_instructions = in.at("warp_instructions").get<std::uint64_t>();
  result.lane_instructions = in.at("lane_instructions").get<std::uint64_t>();
  result.seconds = in.at("seconds").get<double>();
  result.device_seconds = in.at("device_seconds").get<double>();
}

}  // namespace echolo::runtime
