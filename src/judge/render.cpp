// The verdict for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "judge/invocation.hpp"
#include "judge/minimise.hpp"
#include "judge/schedules.hpp"
#include "judge/verdict.hpp"

namespace echolo::judge {
namespace {

constexpr const char* kRed = "\x1b[1;31m";
constexpr const char* kGreen = "\x1b[1;32m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";
constexpr std::size_t kMaxLogLines = 40;
constexpr std::size_t kMaxOutputLines = 20;  // of one PE
constexpr std::size_t kShownDigits = 8;      // of a finding's id

std::string painted(const std::string& text, const char* colour, bool on) {
  return on ? colour + text + kPlain : text;
}

std::string head(const Verdict& verdict, bool colour) {
  std::string line = painted(verdict.status, is_good(verdict) ? kGreen : kRed, colour) + ": " + verdict.label;
  if (!verdict.problem.empty()) line += " for " + verdict.problem;
  line += fmt::format(", {} PEs", verdict.world);
  if (!verdict.dtype.empty()) line += ", " + verdict.dtype;
  return line + ", virtual node (" + verdict.fabric + ")\n";
}

// How the worst of some comparisons stands to what is allowed: "0.12", "=" for equal bit for bit, "WRONG".
std::string cell(const std::vector<const CheckRow*>& rows) {
  double worst = 0;
  bool exact = true;
  for (const CheckRow* row : rows) {
    if (!row->ok) return "WRONG";
    if (row->max_error != 0) exact = false;
    if (row->allowed > 0) worst = std::max(worst, row->max_error / row->allowed);
  }
  return rows.empty() ? "-" : exact ? "=" : fmt::format("{:.2f}", worst);
}

std::string matrix(const Verdict& verdict) {
  std::vector<std::pair<std::string, std::uint64_t>> lines;
  std::set<int> ranks;
  for (const CheckRow& row : verdict.checks) {
    const std::pair<std::string, std::uint64_t> line{row.size, row.seed};
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
    ranks.insert(row.rank);
  }
  if (lines.empty()) return {};
  std::string out =
      "  worst error as a part of what is allowed (=: equal bit for bit), over schedules and calls\n";
  out += fmt::format("  {:<10} {:>5}", "size", "seed");
  for (const int rank : ranks) out += fmt::format(" {:>7}", "rank " + std::to_string(rank));
  out += '\n';
  for (const auto& [size, seed] : lines) {
    out += fmt::format("  {:<10} {:>5}", size, seed);
    for (const int rank : ranks) {
      std::vector<const CheckRow*> rows;
      for (const CheckRow& row : verdict.checks) {
        if (row.size == size && row.seed == seed && row.rank == rank) rows.push_back(&row);
      }
      out += fmt::format(" {:>7}", cell(rows));
    }
    out += '\n';
  }
  return out;
}

std::string wrong_rows(const Verdict& verdict, bool all) {
  constexpr std::size_t kShown = 6;
  std::string out;
  std::size_t n = 0;
  for (const CheckRow& row : verdict.checks) {
    if (row.ok) continue;
    ++n;
    if (n > kShown && !all) continue;
    out += fmt::format("  size {}, seed {}, {} schedule {}, call {}{}, rank {}: {}\n", row.size, row.seed,
                       row.schedule.policy, row.schedule.seed, row.call, row.graph ? " (graph replay)" : "",
                       row.rank, row.detail);
  }
  if (n > kShown && !all)
    out += fmt::format("  and {} more comparisons that are wrong (--verbose shows them)\n", n - kShown);
  return out;
}

// What was tried to make the first finding's run smaller.
std::string minimisation(const Verdict& verdict) {
  if (verdict.minimise_runs == 0) return {};
  const std::string limits =
      fmt::format("{} further run{}; at most {} are made, none after {} s{}", verdict.minimise_runs,
                  verdict.minimise_runs == 1 ? "" : "s", kMostTrials, kMinimiseBudget.count(),
                  verdict.minimise_cut ? ", which were over" : "");
  if (verdict.minimised.empty()) return "   no smaller run shows it (" + limits + ")\n";
  return "   reduced, and still the same: " + join(verdict.minimised, "; ") + " (" + limits + ")\n";
}

std::string indented_log(const std::string& log, bool all) {
  std::string out;
  std::size_t n = 0;
  for (const std::string& line : split(log, '\n')) {
    if (trim(line).empty()) continue;
    if (++n > kMaxLogLines && !all) continue;
    out += line + "\n";
  }
  if (n > kMaxLogLines && !all) out += fmt::format("... {} more lines\n", n - kMaxLogLines);
  return out;
}

std::string modelled(const Verdict& verdict, bool verbose) {
  std::string out;
  for (const ModelledSize& size : verdict.modelled) {
    if (size.size.empty()) {
      out += fmt::format("  modelled: {:.2f} us for the whole program\n", size.median_us);
    } else {
      out += fmt::format("  modelled: {:.2f} us a call for {} ({})\n", size.median_us, size.size,
                         params_text(size.params));
    }
    if (!size.model) continue;
    const TimeModel& model = *size.model;
    out += fmt::format(
        "    on {}: at least {:.2f} us, for {}; mostly held back by {}; {:.0f} % exposed communication\n",
        model.topology, model.roofline_us, model.roofline, model.bottleneck, 100 * model.exposed_share);
    if (verbose) {
      for (const std::string& line : split(model.words, '\n')) {
        if (!line.empty()) out += "    " + line + "\n";
      }
    }
  }
  return out;
}

std::string stage_line(const Verdict& verdict) {
  std::vector<std::string> parts;
  for (const StageTime& stage : verdict.stages) {
    parts.push_back(fmt::format("{} {:.2f} s{}", stage.name, stage.seconds,
                                stage.cached                ? " (cached)"
                                : stage.name == "reference" ? " (beside the others)"
                                                            : ""));
  }
  return "  " + join(parts, ", ") + "\n";
}

std::string next_step(const Verdict& verdict) {
  const std::string again =
      verdict.problem.empty()
          ? echolo_command() + " sanitize -n " + std::to_string(verdict.world) + " " + verdict.path
          : echolo_command() + " check " + verdict.problem + " " + verdict.path;
  if (is_good(verdict)) {
    return verdict.problem.empty() ? ""
                                   : "  next: " + echolo_command() + " optimize " + verdict.problem +
                                         " --world " + std::to_string(verdict.world) + "\n";
  }
  if (verdict.status == "infra")
    return "  next: " + echolo_command() + " doctor says what this machine lacks\n";
  if (!verdict.findings.empty()) {
    return "  next: docs/findings/" + std::string(vgpu::name_of(verdict.findings.front().finding.kind)) +
           ".md explains this kind; mend the line, then again: " + again + "\n";
  }
  if (verdict.status == "refused") return "  next: take out what the gate names, then again: " + again + "\n";
  if (verdict.status == "compile_error") return "  next: mend the errors above, then again: " + again + "\n";
  return "  next: mend it, then again: " + again + "\n";
}

}  // namespace

std::string render(const Verdict& verdict, const TextOptions& options) {
  std::string out = head(verdict, options.colour);
  for (const Gate& gate : verdict.gates) {
    if (gate.result == "refused") out += "  gate " + gate.name + ": " + gate.evidence + "\n";
  }
  for (const StageTime& stage : verdict.stages) {
    if (verdict.status == "compile_error" && stage.name == "compile")
      out += indented_log(stage.log, options.verbose);
  }
  vgpu::RenderOptions rendering;
  rendering.colour = options.colour;
  rendering.sources = verdict.sources;
  for (const JudgedFinding& judged : verdict.findings) {
    rendering.occurrence = fmt::format("first under seed {}, policy {} (seed {}){}", judged.replay.seed,
                                       judged.replay.schedule.policy, judged.replay.schedule.seed,
                                       judged.replay.size.empty() ? "" : ", size " + judged.replay.size);
    out += "\n" + vgpu::render(judged.finding, rendering);
    const bool first = &judged == &verdict.findings.front();
    if (first) out += minimisation(verdict);
    if (!options.again.empty()) {
      out += "   again: " + options.again +
             (first ? "" : " --finding " + judged.finding.id.substr(0, kShownDigits)) + "\n";
    }
  }
  if (verdict.findings.empty() && verdict.failed && !options.again.empty())
    out += "  again: " + options.again + "\n";
  if (!verdict.findings.empty()) out += '\n';
  const bool told =
      !verdict.findings.empty() || verdict.status == "refused" || verdict.status == "compile_error";
  // Of a PE's end the PE itself tells below.
  const auto tells = [&verdict](const PeOutput& pe) {
    const std::string who = "PE " + std::to_string(pe.pe);
    if (pe.end.empty() || !verdict.message.starts_with(who)) return false;
    const std::size_t what = verdict.message.find_first_not_of(": ", who.size());
    return what != std::string::npos && pe.end.starts_with(std::string_view(verdict.message).substr(what));
  };
  const bool repeated = std::any_of(verdict.pes.begin(), verdict.pes.end(), tells);
  if (!told && !repeated && !verdict.message.empty()) out += "  " + printable(verdict.message) + "\n";
  if (verdict.status == "wrong_result") out += wrong_rows(verdict, options.verbose);
  for (const PeOutput& pe : verdict.pes) {
    if (!pe.end.empty()) out += fmt::format("  PE {}: {}\n", pe.pe, pe.end);
    std::size_t n_lines = 0;
    for (const std::string& line : split(trim(pe.output), '\n')) {
      if (line.empty() || (++n_lines > kMaxOutputLines && !options.verbose)) continue;
      out += fmt::format("  PE {} | {}\n", pe.pe, line);
    }
    if (n_lines > kMaxOutputLines && !options.verbose) {
      out += fmt::format("  PE {} | ... {} more lines (--verbose shows them)\n", pe.pe,
                         with_commas(n_lines - kMaxOutputLines));
    }
  }
  if (is_good(verdict) && !verdict.checks.empty()) {
    out += fmt::format("  {} comparisons with the oracle, all within tolerance\n",
                       with_commas(verdict.checks.size()));
  }
  if (is_good(verdict) || options.verbose || verdict.status == "wrong_result") out += matrix(verdict);
  if (!verdict.schedules.empty() && (is_good(verdict) || options.verbose))
    out += "  schedules: " + schedules_text(verdict.seeds, verdict.schedules) + "\n";
  out += modelled(verdict, options.verbose);
  if (verdict.suppressed > 0)
    out += fmt::format("  {} findings suppressed by benign() comments\n", verdict.suppressed);
  out += painted(stage_line(verdict), kDim, options.colour);
  if (!verdict.id.empty()) out += "  kept as " + verdict.id + "\n";
  out += next_step(verdict);
  return out;
}

}  // namespace echolo::judge
