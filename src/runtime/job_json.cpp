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

json dim_to_json(const vgpu::Dim3& dim) { return {dim.x, dim.y, dim.z}; }

vgpu::Dim3 dim_from_json(const json& in) {
  return {in.at(0).get<std::uint32_t>(), in.at(1).get<std::uint32_t>(), in.at(2).get<std::uint32_t>()};
}

json filter_to_json(const vgpu::TraceFilter& filter) {
  json threads = json::array(), objects = json::array();
  for (const auto& thread : filter.threads)
    threads.push_back({thread.pe, dim_to_json(thread.block), dim_to_json(thread.thread)});
  for (const auto& object : filter.objects) objects.push_back({object.pe, object.object, object.offset});
  return {{"threads", threads}, {"objects", objects}, {"lines", filter.lines}, {"most", filter.most}};
}

vgpu::TraceFilter filter_from_json(const json& in) {
  vgpu::TraceFilter filter;
  for (const json& thread : in.at("threads"))
    filter.threads.push_back(
        {thread.at(0).get<int>(), dim_from_json(thread.at(1)), dim_from_json(thread.at(2))});
  for (const json& object : in.at("objects"))
    filter.objects.push_back(
        {object.at(0).get<int>(), object.at(1).get<std::string>(), object.at(2).get<std::int64_t>()});
  filter.lines = in.at("lines").get<std::vector<std::pair<std::string, int>>>();
  filter.most = in.at("most").get<std::size_t>();
  return filter;
}

json event_to_json(const vgpu::TraceEvent& event) {
  return {{"ns", event.ns},
          {"pe", event.pe},
          {"block", dim_to_json(event.block)},
          {"thread", dim_to_json(event.thread)},
          {"threads", event.threads},
          {"file", event.where.file},
          {"line", event.where.line},
          {"column", event.where.column},
          {"function", event.where.function},
          {"call", event.call},
          {"what", event.what},
          {"address", event.address},
          {"value", event.value}};
}

vgpu::TraceEvent event_from_json(const json& in) {
  vgpu::TraceEvent event;
  event.ns = in.at("ns").get<std::uint64_t>();
  event.pe = in.at("pe").get<int>();
  event.block = dim_from_json(in.at("block"));
  event.thread = dim_from_json(in.at("thread"));
  event.threads = in.at("threads").get<int>();
  event.where.file = in.at("file").get<std::string>();
  event.where.line = in.at("line").get<int>();
  event.where.column = in.at("column").get<int>();
  event.where.function = in.at("function").get<std::string>();
  event.call = in.at("call").get<int>();
  event.what = in.at("what").get<std::string>();
  event.address = in.at("address").get<std::string>();
  event.value = in.at("value").get<std::string>();
  return event;
}

}  // namespace

json trace_to_json(const std::vector<vgpu::TraceEvent>& events) {
  json out = json::array();
  for (const vgpu::TraceEvent& event : events) out.push_back(event_to_json(event));
  return out;
}

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
         {"register_counts", spec.register_counts},
         {"work_file", spec.work_file}};
  if (!spec.trace.empty()) out["trace"] = filter_to_json(spec.trace);
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
  spec.work_file = in.value("work_file", "");
  if (in.contains("trace")) spec.trace = filter_from_json(in.at("trace"));
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
         {"switches", result.switches},
         {"seconds", result.seconds},
         {"device_seconds", result.device_seconds},
         {"trace", trace_to_json(result.trace)},
         {"trace_skipped", result.trace_skipped}};
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
  result.switches = in.at("switches").get<std::uint64_t>();
  result.seconds = in.at("seconds").get<double>();
  result.device_seconds = in.at("device_seconds").get<double>();
  result.trace.clear();
  for (const json& event : in.at("trace")) result.trace.push_back(event_from_json(event));
  result.trace_skipped = in.at("trace_skipped").get<std::uint64_t>();
}

}  // namespace echolo::runtime
