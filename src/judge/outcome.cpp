#include "judge/outcome.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "judge/check.hpp"
#include "judge/sandbox.hpp"
#include "problem/safetensors.hpp"
#include "problem/tolerance.hpp"

namespace echolo::judge {
namespace {

bool is_leak(const JudgedFinding& judged) { return judged.finding.kind == vgpu::FindingKind::kLeak; }

std::string end_of(const runtime::PeReport& pe) {
  if (!pe.detail.empty()) return pe.detail;
  switch (pe.end) {
    case runtime::PeEnd::kOk:
      return {};
    case runtime::PeEnd::kExitCode:
      return "exit code " + std::to_string(pe.code);
    case runtime::PeEnd::kSignal:
      return std::string("signal ") + ::strsignal(pe.code);
    case runtime::PeEnd::kException:
      return "an exception left the code";
    case runtime::PeEnd::kTimeout:
      return "did not come to an end";
    case runtime::PeEnd::kKilled:
      return "killed, because the job was over";
  }
  return {};
}

void rename_sources(std::string& text, const CompileRequest& compiled) {
  const bool candidate = compiled.kind == SourceKind::kCandidate;
  const std::string inside = candidate ? std::string(kScratch) + "/" + kSandboxSource : "/program/";
  for (std::size_t at = text.find(inside); at != std::string::npos; at = text.find(inside, at)) {
    const std::string shown = candidate ? kSandboxSource : "";
    text.replace(at, inside.size(), shown);
    at += shown.size();
  }
  // A place in the source; the whole path would drown the sentence that it stands in.
  const std::string place = std::string(kSandboxSource) + ":";
  const std::string name = std::filesystem::path(compiled.path).filename().string() + ":";
  for (std::size_t at = candidate ? text.find(place) : std::string::npos; at != std::string::npos;
       at = text.find(place, at + name.size())) {
    text.replace(at, place.size(), name);
  }
}

}  // namespace

void name_sources(runtime::JobResult& job, const CompileRequest& compiled) {
  rename_sources(job.message, compiled);
  for (runtime::PeReport& pe : job.pes) rename_sources(pe.detail, compiled);
}

void settle(const runtime::JobResult& job, JobOutcome& outcome) {
  const auto fault = std::find_if_not(outcome.findings.begin(), outcome.findings.end(), is_leak);
  if (fault != outcome.findings.end()) {
    outcome.status = vgpu::status_of(fault->finding.kind);
    outcome.message = fault->finding.message;
    return;
  }
  if (job.status != "correct" && job.status != vgpu::status_of(vgpu::FindingKind::kLeak)) {
    outcome.status = job.status;
    outcome.message = job.message;
    return;
  }
  const auto wrong =
      std::find_if(outcome.rows.begin(), outcome.rows.end(), [](const CheckRow& row) { return !row.ok; });
  if (wrong == outcome.rows.end()) {
    outcome.status = "correct";
    return;
  }
  outcome.status = "wrong_result";
  outcome.message = "rank " + std::to_string(wrong->rank) + ", call " + std::to_string(wrong->call) +
                    (wrong->graph ? " (graph replay)" : "") + ", size " + wrong->size + ", seed " +
                    std::to_string(wrong->seed) + ": " + wrong->detail;
}

std::vector<JudgedFinding> judge_findings(const runtime::JobResult& job, const CompileRequest& compiled,
                                          const Replay& replay) {
  std::vector<JudgedFinding> out;
  for (vgpu::Finding finding : job.findings) {
    for (vgpu::Site& site : finding.sites) {
      site.where.file = user_path(site.where.file, compiled);
      for (vgpu::Frame& frame : site.inlined_at) frame.file = user_path(frame.file, compiled);
      rename_sources(site.note, compiled);
    }
    for (std::string* text : {&finding.message, &finding.why, &finding.advice, &finding.address.object})
      rename_sources(*text, compiled);
    out.push_back({std::move(finding), replay, job.switches});
  }
  std::stable_partition(out.begin(), out.end(), [](const JudgedFinding& judged) { return !is_leak(judged); });
  return out;
}

void judge_trace(runtime::JobResult& job, const CompileRequest& compiled, JobOutcome& outcome) {
  outcome.trace = std::move(job.trace);
  outcome.trace_skipped = job.trace_skipped;
  for (vgpu::TraceEvent& event : outcome.trace) {
    event.where.file = user_path(event.where.file, compiled);
    // The words say enough; where they come from is in the finding.
    if (const std::size_t place = event.address.find(" at "); place != std::string::npos)
      event.address.erase(place, event.address.find(", byte ", place) - place);
  }
}

std::vector<PeOutput> pe_outputs(const runtime::JobResult& job) {
  std::vector<PeOutput> out;
  for (std::size_t i = 0; i < job.pes.size(); ++i) {
    const runtime::PeReport& pe = job.pes[i];
    // That the node stopped a PE says nothing about it: another one, or a finding, was the reason.
    const bool quiet = pe.end == runtime::PeEnd::kOk || pe.end == runtime::PeEnd::kKilled;
    const std::string end = quiet ? "" : end_of(pe);
    if (end.empty() && pe.output.empty()) continue;
    out.push_back({static_cast<int>(i), printable(end),
                   printable(pe.output) + (pe.output_truncated ? "\n[more was printed]\n" : "")});
  }
  return out;
}

Result<std::vector<CheckRow>> compare_outputs(const Problem& problem,
                                              const std::vector<const CaseResult*>& calls,
                                              const std::string& output_dir, const CheckRow& where) {
  std::vector<CheckRow> rows;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    const CaseResult& expected = *calls[k];
    for (std::size_t rank = 0; rank < expected.ranks.size(); ++rank) {
      const RankResult& reference = expected.ranks[rank];
      const std::string path =
          (std::filesystem::path(output_dir) /
           ("call" + std::to_string(k + 1) + ".rank" + std::to_string(rank) + ".safetensors"))
              .string();
      Result<Safetensors> got = Safetensors::read(path);
      if (!got) return machine_error("an output of the virtual node is missing: " + got.error().render());
      Result<Safetensors> oracle = Safetensors::read(reference.oracle_path);
      if (!oracle) return oracle.error();
      for (std::size_t o = 0; o < reference.outputs.size(); ++o) {
        const TensorInfo& info = reference.outputs[o];
        Result<TensorView> out_tensor = got->get(info.name);
        if (!out_tensor) return out_tensor.error();
        Result<TensorView> oracle_tensor = oracle->get(info.name);
        if (!oracle_tensor) return oracle_tensor.error();
        Result<Comparison> compared =
            compare(*out_tensor, *oracle_tensor, expected.noise[o], problem.tolerance, reference.n_rows[o]);
        if (!compared) return compared.error();
        CheckRow row = where;
        row.call = static_cast<int>(k) + 1;
        row.graph = k >= static_cast<std::size_t>(kCalls);
        row.rank = static_cast<int>(rank);
        row.output = info.name;
        row.max_error = compared->max_error;
        row.allowed = compared->allowed;
        row.ok = compared->ok;
        if (!row.ok) row.detail = describe(*compared, info);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace echolo::judge
