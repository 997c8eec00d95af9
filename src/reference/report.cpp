#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "reference/reference.hpp"

namespace echolo {
namespace {

using Json = nlohmann::json;

std::string commas(std::int64_t n) { return with_commas(static_cast<unsigned long long>(n)); }

Json json_of(const TensorInfo& info) {
  return {
      {"name", info.name}, {"dtype", dtype_name(info.dtype)}, {"shape", info.shape}, {"bytes", info.bytes()}};
}

Json json_of(const std::vector<TensorInfo>& infos) {
  Json out = Json::array();
  for (const TensorInfo& info : infos) out.push_back(json_of(info));
  return out;
}

Json json_of(const Collective& call) {
  return {{"op", call.op},
          {"dtype", call.dtype},
          {"reduce_op", call.reduce_op},
          {"bytes", call.bytes},
          {"group_size", call.group_size},
          {"peer", call.peer},
          {"asynchronous", call.asynchronous},
          {"file", call.file},
          {"line", call.line}};
}

Json json_of(const Params& params) {
  Json out = Json::object();
  for (const ParamValue& param : params) out[param.name] = param.value;
  return out;
}

Json json_of(const SourceExpression& expression) { return expression.expression.text(); }

Json json_of(const std::vector<SourceExpression>& expressions) {
  Json out = Json::array();
  for (const SourceExpression& each : expressions) out.push_back(json_of(each));
  return out;
}

Json json_of(const std::vector<SizeSpec>& sizes) {
  Json out = Json::array();
  for (const SizeSpec& size : sizes) {
    Json values = Json::object();
    for (const auto& [name, value] : size.values) values[name] = json_of(value);
    out.push_back({{"name", size.name}, {"params", std::move(values)}});
  }
  return out;
}

std::string tensors_text(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> parts;
  for (const TensorInfo& info : infos) {
    parts.push_back(info.name + " " + dtype_name(info.dtype) + " " + shape_text(info.shape));
  }
  return join(parts, ", ");
}

std::string call_text(const Collective& call) {
  std::string out = call.op;
  if (!call.reduce_op.empty()) out += " " + call.reduce_op;
  if (call.bytes > 0)
    out += ", " + human_bytes(static_cast<unsigned long long>(call.bytes)) + " of " + call.dtype;
  if (call.peer >= 0) out += ", rank " + std::to_string(call.peer);
  if (call.asynchronous) out += ", asynchronous";
  if (!call.file.empty()) {
    out += fmt::format("   {}:{}", std::filesystem::path(call.file).filename().string(), call.line);
  }
  return out;
}

bool same_calls(const RankResult& a, const RankResult& b) {
  if (a.collectives.size() != b.collectives.size()) return false;
  for (std::size_t i = 0; i < a.collectives.size(); ++i) {
    if (call_text(a.collectives[i]) != call_text(b.collectives[i])) return false;
  }
  return true;
}

void render_calls(std::string& out, const CaseResult& one) {
  bool same = true;
  for (const RankResult& rank : one.ranks) same = same && same_calls(rank, one.ranks.front());
  for (std::size_t rank = 0; rank < (same ? 1 : one.ranks.size()); ++rank) {
    const std::string who = same ? std::string("every rank") : "rank " + std::to_string(rank);
    if (one.ranks[rank].collectives.empty()) out += fmt::format("  {:<9} {}: no collective\n", "issues", who);
    int number = 0;
    for (const Collective& call : one.ranks[rank].collectives) {
      ++number;
      out += number == 1
                 ? fmt::format("  {:<9} {}: {}. {}\n", "issues", who, number, call_text(call))
                 : fmt::format("  {:<9} {:{}}  {}. {}\n", "", "", who.size(), number, call_text(call));
    }
  }
}

std::string size_text(const SizeSpec& size) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : size.values) parts.push_back(name + " = " + value.expression.text());
  return join(parts, ", ");
}

std::string shape_text_of(const std::vector<SourceExpression>& shape) {
  std::vector<std::string> parts;
  for (const SourceExpression& extent : shape) parts.push_back(extent.expression.text());
  return "[" + join(parts, ", ") + "]";
}

template <typename Range, typename Text>
std::string joined(const Range& range, const Text& text) {
  std::vector<std::string> parts;
  for (const auto& each : range) parts.emplace_back(text(each));
  return join(parts, ", ");
}

}  // namespace

Json to_json(const ReferenceRun& run) {
  Json cases = Json::array();
  for (const CaseResult& one : run.cases) {
    Json ranks = Json::array();
    for (std::size_t r = 0; r < one.ranks.size(); ++r) {
      const RankResult& rank = one.ranks[r];
      Json calls = Json::array();
      for (const Collective& call : rank.collectives) calls.push_back(json_of(call));
      ranks.push_back({{"rank", r},
                       {"inputs", json_of(rank.inputs)},
                       {"outputs", json_of(rank.outputs)},
                       {"n_rows", rank.n_rows},
                       {"collectives", std::move(calls)},
                       {"flops", rank.flops},
                       {"seconds", rank.seconds},
                       {"files",
                        {{"inputs", rank.inputs_path},
                         {"reference", rank.reference_path},
                         {"oracle", rank.oracle_path}}}});
    }
    Json noise = Json::array();
    for (const OutputNoise& each : one.noise) {
      noise.push_back({{"output", each.output},
                       {"relative", each.relative},
                       {"max_abs", each.max_abs},
                       {"exact", each.exact}});
    }
    cases.push_back({{"params", json_of(one.request.params)},
                     {"dtype", dtype_name(one.request.dtype)},
                     {"seed", one.request.seed},
                     {"call", one.request.call},
                     {"cached", one.cached},
                     {"noise", std::move(noise)},
                     {"ranks", std::move(ranks)}});
  }
  return {{"problem", run.problem},     {"world", run.world},           {"backend", "gloo"},
          {"torch", run.torch_version}, {"python", run.python_version}, {"seconds", run.seconds},
          {"cases", std::move(cases)}};
}

std::string render(const Problem& problem, const ReferenceRun& run) {
  std::string out = fmt::format("{}: {}\nPyTorch {}, gloo, {} ranks\n", problem.name, problem.summary,
                                run.torch_version, run.world);
  for (const CaseResult& one : run.cases) {
    out += fmt::format("\n{} {}, seed {}, call {}{}\n", params_text(one.request.params),
                       dtype_name(one.request.dtype), one.request.seed, one.request.call,
                       one.cached ? " (cached)" : "");
    bool same = true;
    for (const RankResult& rank : one.ranks) {
      same = same && rank.inputs == one.ranks[0].inputs && rank.outputs == one.ranks[0].outputs;
    }
    for (std::size_t rank = 0; rank < (same ? 1 : one.ranks.size()); ++rank) {
      const std::string who = same ? "" : fmt::format("rank {}: ", rank);
      out += fmt::format("  {:<9} {}{}\n", "inputs", who, tensors_text(one.ranks[rank].inputs));
      out += fmt::format("  {:<9} {}{}\n", "outputs", who, tensors_text(one.ranks[rank].outputs));
    }
    render_calls(out, one);
    std::int64_t flops = 0;
    double seconds = 0;
    for (const RankResult& rank : one.ranks) {
      flops = std::max(flops, rank.flops);
      seconds = std::max(seconds, rank.seconds);
    }
    out += fmt::format("  {:<9} {} on one rank\n", "FLOPs", commas(flops));
    for (const OutputNoise& noise : one.noise) {
      out += noise.exact
                 ? fmt::format("  {:<9} {}: none, so outputs must match bit for bit\n", "noise", noise.output)
                 : fmt::format(
                       "  {:<9} {}: {:.3g} at most, {:.3g} relative to float64; {:g} times that is allowed\n",
                       "noise", noise.output, noise.max_abs, noise.relative,
                       std::min(problem.tolerance.k, kToleranceFactor));
    }
    out += fmt::format("  {:<9} {:.1f} ms on this CPU, {}\n", "took", seconds * 1e3,
                       one.noise.empty() ? "without an oracle" : "oracle in float64");
    for (std::size_t rank = 0; rank < one.ranks.size() && rank < 1; ++rank) {
      out += fmt::format("  {:<9} {}\n", "files",
                         std::filesystem::path(one.ranks[rank].inputs_path).parent_path().string());
    }
  }
  return out;
}

Json to_json(const Problem& problem) {
  Json params = Json::array();
  for (const ParamSpec& param : problem.params) {
    Json each = {{"name", param.name}, {"about", param.about}};
    if (param.default_value) each["default"] = json_of(*param.default_value);
    if (param.draw) {
      each["draw"] = {{"min", json_of(param.draw->min)},
                      {"max", json_of(param.draw->max)},
                      {"multiple_of", json_of(param.draw->multiple_of)}};
    }
    params.push_back(std::move(each));
  }
  Json dtypes = Json::array();
  for (const DType dtype : problem.dtypes) dtypes.push_back(dtype_name(dtype));
  Json inputs = Json::array();
  for (const InputSpec& input : problem.inputs) {
    inputs.push_back({{"name", input.name},
                      {"shape", json_of(input.shape)},
                      {"dtype", input.dtype ? dtype_name(*input.dtype) : "dtype"},
                      {"replicated", input.replicated}});
  }
  Json outputs = Json::array();
  for (const OutputSpec& output : problem.outputs) {
    Json each = {{"name", output.name},
                 {"shape", json_of(output.shape)},
                 {"dtype", output.dtype ? dtype_name(*output.dtype) : "dtype"}};
    if (!output.count.empty()) each["count"] = output.count;
    outputs.push_back(std::move(each));
  }
  return {{"name", problem.name},
          {"summary", problem.summary},
          {"family", problem.family},
          {"directory", problem.directory},
          {"worlds", problem.worlds},
          {"dtypes", std::move(dtypes)},
          {"params", std::move(params)},
          {"constraints", json_of(problem.constraints)},
          {"sizes", json_of(problem.sizes)},
          {"curve", json_of(problem.curve)},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)}};
}

std::string render(const Problem& problem) {
  std::string out = fmt::format("{}: {}\n", problem.name, problem.summary);
  const auto row = [&](const std::string& what, const std::string& text) {
    out += fmt::format("  {:<11} {}\n", what, text);
  };
  row("family", problem.family);
  row("worlds", joined(problem.worlds, [](int world) { return std::to_string(world); }));
  row("dtypes", joined(problem.dtypes, [](DType dtype) { return dtype_name(dtype); }));
  for (const ParamSpec& param : problem.params) {
    std::string text = param.name;
    if (!param.about.empty()) text += ": " + param.about;
    if (param.default_value) text += " (default " + param.default_value->expression.text() + ")";
    row("parameter", text);
  }
  for (const SourceExpression& constraint : problem.constraints)
    row("constraint", constraint.expression.text());
  for (const InputSpec& input : problem.inputs) {
    row("input", input.name + " " + (input.dtype ? dtype_name(*input.dtype) : "dtype") + " " +
                     shape_text_of(input.shape) + (input.replicated ? ", the same on every rank" : ""));
  }
  if (problem.inputs.empty()) row("input", "made by make_inputs() in reference.py");
  for (const OutputSpec& output : problem.outputs) {
    row("output", output.name + " " + (output.dtype ? dtype_name(*output.dtype) : "dtype") + " " +
                      shape_text_of(output.shape) +
                      (output.count.empty() ? "" : ", rows counted by " + output.count));
  }
  for (const SizeSpec& size : problem.sizes) row("size", size.name + ": " + size_text(size));
  row("curve", joined(problem.curve, [](const SizeSpec& size) { return size.name; }));
  row("directory", problem.directory);
  return out;
}

}  // namespace echolo
