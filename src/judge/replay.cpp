#include "judge/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "judge/sanitize.hpp"
#include "problem/suite.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

vgpu::Dim3 dim_of(const json& in) {
  return {in.at(0).get<std::uint32_t>(), in.at(1).get<std::uint32_t>(), in.at(2).get<std::uint32_t>()};
}

void read_circumstances(const json& in, int world, ReplayRequest& out) {
  out.circumstances.seed = in.at("seed").get<std::uint64_t>();
  out.circumstances.schedule = {in.at("policy").get<std::string>(),
                                in.at("policy_seed").get<std::uint64_t>()};
  out.circumstances.world = in.value("world", world);
  out.circumstances.size = in.value("size", "");
  if (in.contains("params")) {
    for (const auto& [name, value] : in.at("params").items())
      out.params.emplace_back(name, value.get<std::int64_t>());
  }
}

vgpu::TraceFilter filter_of(const json& finding) {
  vgpu::TraceFilter filter;
  for (const json& site : finding.at("sites")) {
    const int pe = site.value("pe", -1);
    if (site.contains("block") && site.contains("thread") && pe >= 0)
      filter.threads.push_back({pe, dim_of(site.at("block")), dim_of(site.at("thread"))});
    const std::string file = site.value("file", "");
    if (const int line = site.value("line", 0); line > 0)
      filter.lines.emplace_back(fs::path(file).filename().string(), line);
  }
  if (finding.contains("address") && finding.at("address").is_object()) {
    const json& address = finding.at("address");
    filter.objects.push_back({address.value("pe", -1), address.value("symbol_or_allocation", ""),
                              address.value("offset", std::int64_t{0})});
  }
  return filter;
}

std::string thread_text(const vgpu::TraceEvent& event) {
  const auto dim = [](const vgpu::Dim3& d) { return fmt::format("({},{},{})", d.x, d.y, d.z); };
  std::string out = fmt::format("PE {} block {} thread {}", event.pe, dim(event.block), dim(event.thread));
  if (event.threads > 1) out += fmt::format(" and {} more", event.threads - 1);
  return out;
}

// Whether the source must come from the store. `now`: the hash of what stands at its place, or why there is
// none.
Result<bool> wants_kept_source(const ReplayRequest& request, const Result<std::string>& now,
                               std::string& note) {
  if (now && *now == request.candidate) return false;
  if (request.source) {
    note = request.path + (now ? " has changed since" : " is gone") + ": its text is taken from the store";
    return true;
  }
  if (!now) return now.error();
  return usage_error(request.origin + " has changed since the verdict (" + request.candidate.substr(0, 19) +
                         " then, " + now->substr(0, 19) + " now)",
                     "replay repeats one source exactly; check the new one again");
}

json dim_json(const vgpu::Dim3& dim) { return {dim.x, dim.y, dim.z}; }

}  // namespace

Result<ReplayRequest> replay_request(const json& verdict, const std::string& finding) {
  try {
    ReplayRequest out;
    out.origin = verdict.at("origin").get<std::string>();
    out.program = verdict.at("problem").is_null();
    out.problem_folder = verdict.value("problem_folder", "");
    out.candidate = verdict.at("candidate").get<std::string>();
    out.path = verdict.value("path", out.origin);
    out.label = verdict.value("label", out.path);
    out.knobs = verdict.value("knobs", std::vector<std::string>());
    out.arguments = verdict.value("arguments", std::vector<std::string>());
    out.dtype = verdict.value("dtype", "");
    out.fabric = verdict.at("fabric").get<std::string>();
    out.timeout_ms = verdict.value("timeout_ms", std::int64_t{60'000});
    const int world = verdict.at("world").get<int>();
    const json& findings = verdict.at("findings");
    const json* chosen = nullptr;
    for (const json& one : findings) {
      if (chosen == nullptr && one.at("id").get<std::string>().starts_with(finding)) chosen = &one;
    }
    if (chosen == nullptr && !finding.empty()) {
      return usage_error("the verdict has no finding whose id begins with '" + finding + "'");
    }
    if (chosen == nullptr && !verdict.contains("replay")) {
      return usage_error("the verdict is " + verdict.at("status").get<std::string>() +
                             ": no run on the virtual node failed, so there is nothing to replay",
                         "check and sanitize give verdicts whose failing runs can be repeated");
    }
    const json& circumstances = chosen != nullptr ? chosen->at("replay") : verdict.at("replay");
    read_circumstances(circumstances, world, out);
    if (verdict.contains("replay") && verdict.at("replay") == circumstances)
      out.status = verdict.at("status").get<std::string>();
    for (const json& one : findings) {
      if (one.at("replay") == circumstances)
        out.findings.emplace_back(one.at("kind").get<std::string>(), one.at("id").get<std::string>());
    }
    if (chosen != nullptr) out.filter = filter_of(*chosen);
    return out;
  } catch (const json::exception& fault) {
    return usage_error(std::string("this is no verdict that can be replayed: ") + fault.what(),
                       "give what `check --json` or `sanitize --json` printed");
  }
}

Result<ReplayReport> replay(const ReplayRequest& request, const CheckOptions& folders, bool trace,
                            Progress& progress) {
  ReplayReport report;
  const std::chrono::milliseconds timeout(request.timeout_ms);
  if (request.program) {
    const Result<std::string> text = read_file(request.origin);
    const Result<bool> kept = wants_kept_source(
        request, text ? Result<std::string>("sha256:" + sha256_hex(*text)) : text, report.note);
    if (!kept) return kept.error();
    SanitizeOptions options;
    if (*kept) options.source = request.source;
    options.world = request.circumstances.world;
    options.arguments = request.arguments;
    options.seed = request.circumstances.seed;
    options.exact_schedules = {request.circumstances.schedule};
    options.fabric = request.fabric;
    options.timeout = timeout;
    options.compile_cache = folders.compile_cache;
    if (trace) options.trace = request.filter;
    Result<Verdict> verdict = sanitize_program(request.origin, options, progress);
    if (!verdict) return verdict.error();
    report.verdict = std::move(*verdict);
  } else {
    Result<Problem> problem = find_problem(request.problem_folder);
    if (!problem) return problem.error();
    Result<Candidate> candidate = load_candidate(request.origin, request.knobs);
    Result<std::string> now = std::string();
    if (candidate) {
      *now = candidate->hash;
    } else {
      now = candidate.error();
    }
    const Result<bool> kept = wants_kept_source(request, now, report.note);
    if (!kept) return kept.error();
    if (*kept) candidate = text_candidate(*request.source, request.path, request.label, request.knobs);
    if (!candidate) return candidate.error();
    CheckOptions options = folders;
    options.world = request.circumstances.world;
    options.dtype = request.dtype;
    options.n_seeds = 1;
    options.seed = request.circumstances.seed;
    options.fabric = request.fabric;
    options.timeout = timeout;
    options.exact_schedules = {request.circumstances.schedule};
    Params params;
    for (const ParamSpec& spec : problem->params) {
      for (const auto& [name, value] : request.params) {
        if (name == spec.name) params.push_back({name, value});
      }
    }
    options.exact_sizes = {{request.circumstances.size, std::move(params)}};
    if (trace) options.trace = request.filter;
    Result<Verdict> verdict = check_candidate(*problem, *candidate, options, progress);
    if (!verdict) return verdict.error();
    report.verdict = std::move(*verdict);
  }
  std::vector<std::string> missing;
  for (const auto& [kind, id] : request.findings) {
    const bool there = std::any_of(report.verdict.findings.begin(), report.verdict.findings.end(),
                                   [&, id = id](const JudgedFinding& one) { return one.finding.id == id; });
    if (!there) missing.push_back(kind + " " + id.substr(0, 8));
  }
  if (!missing.empty()) {
    report.difference = "not seen again: " + join(missing, ", ");
  } else if (!request.status.empty() && request.status != report.verdict.status) {
    report.difference = "the verdict was " + request.status + ", now it is " + report.verdict.status;
  }
  report.same = report.difference.empty();
  return report;
}

json to_json(const ReplayReport& report) {
  json trace = json::array();
  for (const vgpu::TraceEvent& event : report.verdict.trace) {
    trace.push_back({{"ns", event.ns},
                     {"pe", event.pe},
                     {"block", dim_json(event.block)},
                     {"thread", dim_json(event.thread)},
                     {"threads", event.threads},
                     {"file", event.where.file},
                     {"line", event.where.line},
                     {"function", event.where.function},
                     {"call", event.call},
                     {"what", event.what},
                     {"address", event.address},
                     {"value", event.value}});
  }
  return {{"same", report.same},       {"difference", report.difference},
          {"note", report.note},       {"verdict", to_json(report.verdict)},
          {"trace", std::move(trace)}, {"trace_skipped", report.verdict.trace_skipped}};
}

std::string render(const ReplayReport& report, const TextOptions& options, bool trace) {
  std::string out = render(report.verdict, options);
  if (trace) {
    const std::vector<vgpu::TraceEvent>& events = report.verdict.trace;
    out += fmt::format("trace: {} events (virtual time, who, where, what)\n", events.size());
    std::uint64_t skipped = report.verdict.trace_skipped;
    const std::size_t gap = skipped > 0 ? vgpu::TraceFilter().most / 4 : events.size();
    for (std::size_t i = 0; i < events.size(); ++i) {
      const vgpu::TraceEvent& event = events[i];
      if (i == gap) out += fmt::format("  ... {} events left out ...\n", with_commas(skipped));
      out += fmt::format("  {:>9} ns  {}  {}:{}  {}", event.ns, thread_text(event),
                         fs::path(event.where.file).filename().string(), event.where.line, event.what);
      if (!event.value.empty()) out += "  " + event.value;
      if (!event.address.empty()) out += "  [" + printable(event.address) + "]";
      out += '\n';
    }
  }
  if (!report.note.empty()) out += "  note: " + printable(report.note) + "\n";
  out += report.same ? "replay: as it was\n" : "replay: NOT as it was: " + report.difference + "\n";
  return out;
}

}  // namespace echolo::judge
