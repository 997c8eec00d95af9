#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "problem/safetensors.hpp"
#include "reference/reference.hpp"
#include "reference/runner.hpp"

namespace echolo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kFillNames[] = {"normal", "uniform", "integers", "zeros", "ones", "arange"};

std::string rank_path(const fs::path& folder, int rank, const char* what) {
  return (folder / ("rank" + std::to_string(rank) + "." + what)).string();
}

Json info_json(const TensorInfo& info) {
  return {{"name", info.name}, {"dtype", dtype_name(info.dtype)}, {"shape", info.shape}};
}

Json problem_json(const Problem& problem) {
  Json inputs = Json::array();
  for (const InputSpec& input : problem.inputs) {
    inputs.push_back({{"name", input.name},
                      {"line", input.line},
                      {"fill", kFillNames[static_cast<std::size_t>(input.fill)]},
                      {"scale", input.scale},
                      {"replicated", input.replicated}});
  }
  Json outputs = Json::array();
  for (const OutputSpec& output : problem.outputs) {
    std::vector<std::string> extents;
    for (const SourceExpression& extent : output.shape) extents.push_back(extent.expression.text());
    outputs.push_back({{"name", output.name},
                       {"line", output.line},
                       {"count", output.count},
                       {"shape_text", "[" + join(extents, ", ") + "]"}});
  }
  Json params = Json::array();
  for (const ParamSpec& param : problem.params) params.push_back(param.name);
  return {{"name", problem.name},         {"directory", problem.directory},
          {"toml", problem.toml_path},    {"reference", problem.reference_path},
          {"params", std::move(params)},  {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)}};
}

Result<Json> case_json(const Problem& problem, const ReferenceCase& one, int world,
                       const std::string& directory) {
  Json params = Json::object();
  Bindings bindings = {{"world", world}};
  for (const ParamValue& param : one.params) {
    params[param.name] = param.value;
    bindings[param.name] = param.value;
  }
  Json inputs = Json::array();
  Json outputs = Json::array();
  for (int rank = 0; rank < world; ++rank) {
    bindings["rank"] = rank;
    const auto input_infos = problem.input_infos(one.params, world, rank, one.dtype);
    if (!input_infos) return input_infos.error();
    Json of_rank = Json::array();
    for (std::size_t i = 0; i < input_infos->size(); ++i) {
      Json info = info_json((*input_infos)[i]);
      const InputSpec& spec = problem.inputs[i];
      if (spec.low) {
        const Result<std::int64_t> low = spec.low->expression.evaluate(bindings);
        if (!low) return low.error();
        const Result<std::int64_t> high = spec.high->expression.evaluate(bindings);
        if (!high) return high.error();
        info["low"] = *low;
        info["high"] = *high;
      }
      of_rank.push_back(std::move(info));
    }
    inputs.push_back(std::move(of_rank));
    const auto output_infos = problem.output_infos(one.params, world, rank, one.dtype);
    if (!output_infos) return output_infos.error();
    of_rank = Json::array();
    for (const TensorInfo& info : *output_infos) of_rank.push_back(info_json(info));
    outputs.push_back(std::move(of_rank));
  }
  return Json{{"params", std::move(params)},
              {"dtype", dtype_name(one.dtype)},
              {"seed", one.seed},
              {"call", one.call},
              {"directory", directory},
              {"inputs", std::move(inputs)},
              {"outputs", std::move(outputs)}};
}

std::vector<TensorInfo> infos_from(const Json& json) {
  std::vector<TensorInfo> out;
  for (const Json& each : json) {
    const auto dtype = dtype_from_name(each.at("dtype").get<std::string>());
    if (!dtype) throw Json::other_error::create(501, "unknown dtype", &each);
    out.push_back(
        {each.at("name").get<std::string>(), *dtype, each.at("shape").get<std::vector<std::int64_t>>()});
  }
  return out;
}

RankResult rank_from(const Json& json, const Problem& problem, const fs::path& folder, int rank,
                     bool oracle) {
  RankResult out;
  out.inputs_path = rank_path(folder, rank, "inputs.safetensors");
  out.reference_path = rank_path(folder, rank, "reference.safetensors");
  if (oracle) out.oracle_path = rank_path(folder, rank, "oracle.safetensors");
  out.inputs = infos_from(json.at("inputs"));
  out.outputs = infos_from(json.at("outputs"));
  out.n_rows = json.at("n_rows").get<std::vector<std::int64_t>>();
  out.flops = json.at("flops").get<std::int64_t>();
  out.seconds = json.at("seconds").get<double>();
  for (const Json& each : json.at("collectives")) {
    Collective collective;
    collective.op = each.at("op").get<std::string>();
    collective.dtype = each.at("dtype").get<std::string>();
    collective.reduce_op = each.at("reduce_op").get<std::string>();
    collective.bytes = each.at("bytes").get<std::int64_t>();
    collective.group_size = each.at("group_size").get<int>();
    collective.peer = each.at("peer").get<int>();
    collective.asynchronous = each.at("asynchronous").get<bool>();
    const std::string file = each.at("file").get<std::string>();
    if (!file.empty()) collective.file = (fs::path(problem.directory) / file).string();
    collective.line = each.at("line").get<int>();
    out.collectives.push_back(std::move(collective));
  }
  return out;
}

// A case that the cache holds whole, or nothing.
std::optional<CaseResult> load_case(const Problem& problem, const fs::path& folder, int world, bool oracle) {
  std::error_code code;
  if (!fs::exists(folder / "case.json", code)) return std::nullopt;
  const Result<std::string> text = read_file((folder / "case.json").string());
  if (!text) return std::nullopt;
  try {
    const Json json = Json::parse(*text);
    CaseResult out;
    out.cached = true;
    for (int rank = 0; rank < world; ++rank) {
      out.ranks.push_back(
          rank_from(json.at("ranks").at(static_cast<std::size_t>(rank)), problem, folder, rank, oracle));
      const RankResult& result = out.ranks.back();
      for (const std::string& path : {result.inputs_path, result.reference_path, result.oracle_path}) {
        if (!path.empty() && !fs::exists(path, code)) return std::nullopt;
      }
    }
    for (const Json& each : json.at("noise")) {
      out.noise.push_back({each.at("output").get<std::string>(), each.at("relative").get<double>(),
                           each.at("max_abs").get<double>(), each.at("exact").get<bool>()});
    }
    return out;
  } catch (const Json::exception&) {
    return std::nullopt;  // left by another version, or damaged: made anew
  }
}

Result<std::vector<OutputNoise>> noise_of(const Problem& problem, const std::vector<RankResult>& ranks) {
  std::vector<OutputNoise> out;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Result<Safetensors> reference = Safetensors::read(ranks[rank].reference_path);
    if (!reference) return reference.error();
    const Result<Safetensors> oracle = Safetensors::read(ranks[rank].oracle_path);
    if (!oracle) return oracle.error();
    for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
      const Result<TensorView> in_type = reference->get(problem.outputs[i].name);
      if (!in_type) return in_type.error();
      const Result<TensorView> wide = oracle->get(problem.outputs[i].name);
      if (!wide) return wide.error();
      Result<OutputNoise> noise = measure_noise(*in_type, *wide, ranks[rank].n_rows.at(i));
      if (!noise) {
        Error error = noise.error();
        if (error.kind == ErrorKind::kUsage) {
          error.message += " (rank " + std::to_string(rank) + ")";
          error.file = problem.toml_path;
          error.line = problem.outputs[i].line;
        }
        return error;
      }
      if (rank == 0) {
        out.push_back(std::move(*noise));
      } else {
        out[i] = merge_noise(out[i], *noise);
      }
    }
  }
  return out;
}

// Joins what the ranks left in `scratch`, adds the noise, and moves the whole into the cache at once.
Status finish_case(const Problem& problem, const fs::path& scratch, const fs::path& folder, int world,
                   bool oracle) {
  Json ranks = Json::array();
  std::vector<RankResult> results;
  std::error_code code;
  for (int rank = 0; rank < world; ++rank) {
    const std::string path = rank_path(scratch, rank, "json");
    const Result<std::string> text = read_file(path);
    if (!text) return machine_error("the reference runner left no result of rank " + std::to_string(rank));
    Json json = Json::parse(*text, nullptr, false);
    if (json.is_discarded()) return machine_error("the reference runner left a damaged result in " + path);
    results.push_back(rank_from(json, problem, scratch, rank, oracle));
    ranks.push_back(std::move(json));
    fs::remove(path, code);
  }
  Json noise = Json::array();
  if (oracle) {
    const auto measured = noise_of(problem, results);
    if (!measured) return measured.error();
    for (const OutputNoise& each : *measured) {
      noise.push_back({{"output", each.output},
                       {"relative", each.relative},
                       {"max_abs", each.max_abs},
                       {"exact", each.exact}});
    }
  }
  const Json whole = {{"ranks", std::move(ranks)}, {"noise", std::move(noise)}};
  if (Status status = write_file_atomically((scratch / "case.json").string(), whole.dump()); !status)
    return status;
  fs::create_directories(folder.parent_path(), code);
  fs::rename(scratch, folder, code);
  if (!code) return {};
  // Another process was faster, or something damaged lies there.
  if (load_case(problem, folder, world, oracle)) return {};
  fs::remove_all(folder, code);
  fs::rename(scratch, folder, code);
  if (code && !load_case(problem, folder, world, oracle)) {
    return machine_error("cannot move a result to " + folder.string() + ": " + code.message());
  }
  return {};
}

std::string case_key(const std::string& of_problem, const ReferenceCase& one, int world, bool oracle,
                     bool strict) {
  return Sha256()
      .field(of_problem)
      .field(params_text(one.params))
      .field(dtype_name(one.dtype))
      .field(std::to_string(world))
      .field(std::to_string(one.seed))
      .field(std::to_string(one.call))
      .field(oracle ? "oracle" : "in-type only")
      .field(strict ? "strict" : "")
      .hex();
}

// The cases of one request on their way from the ranks' folders into the cache and to the caller, in order.
class Delivery {
 public:
  Delivery(const Problem& problem, const ReferenceRequest& request, fs::path root,
           std::vector<std::string> keys, const OnCase& on_case)
      : problem_(problem),
        request_(request),
        root_(std::move(root)),
        keys_(std::move(keys)),
        on_case_(on_case) {}

  // What the cache lacks, each once, in the order asked for: so the first fault is that of the first case.
  Result<Json> missing_cases() {
    Json cases = Json::array();
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (missing_.contains(keys_[i])) continue;
      if (load(keys_[i])) continue;
      Result<Json> json = case_json(problem_, request_.cases[i], request_.world, "");
      if (!json) return json.error();
      missing_.emplace(keys_[i], "");
      order_.push_back(keys_[i]);
      cases.push_back(std::move(*json));
    }
    return cases;
  }

  // Gives each missing case its folder in `scratch`.
  Status place(Json& cases, const std::string& scratch) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const fs::path folder = fs::path(scratch) / order_[i];
      std::error_code code;
      if (!fs::create_directory(folder, code))
        return machine_error("cannot make the folder " + folder.string() + ": " + code.message());
      missing_[order_[i]] = folder.string();
      cases[i]["directory"] = folder.string();
    }
    return {};
  }

  // Takes in what all ranks have finished by now. The status stays bad once it is.
  const Status& advance() {
    while (status_ && results_.size() < keys_.size()) {
      const std::string& key = keys_[results_.size()];
      const auto found = missing_.find(key);
      const bool waits = found != missing_.end() && !found->second.empty();
      if (waits && !complete(found->second)) break;
      if (waits) status_ = keep(key, found->second);
      if (status_) status_ = deliver(key, found != missing_.end());
    }
    return status_;
  }

  // After the runner has ended well, when nothing may be missing any more.
  const Status& finish() {
    if (advance() && results_.size() < keys_.size()) {
      status_ =
          machine_error("the reference runner left no result of case " + std::to_string(results_.size() + 1));
    }
    return status_;
  }

  const Status& status() const { return status_; }
  std::vector<CaseResult> take() { return std::move(results_); }

 private:
  fs::path folder_of(const std::string& key) const { return root_ / key.substr(0, 2) / key; }
  std::optional<CaseResult> load(const std::string& key) const {
    return load_case(problem_, folder_of(key), request_.world, request_.oracle);
  }
  bool complete(const std::string& folder) const {
    std::error_code code;
    for (int rank = 0; rank < request_.world; ++rank) {
      if (!fs::exists(rank_path(folder, rank, "json"), code)) return false;
    }
    return true;
  }
  Status keep(const std::string& key, std::string& folder) {
    try {
      Status status = finish_case(problem_, folder, folder_of(key), request_.world, request_.oracle);
      folder.clear();
      return status;
    } catch (const Json::exception& error) {
      return machine_error(std::string("the reference runner's result has another form: ") + error.what());
    }
  }
  Status deliver(const std::string& key, bool made_now) {
    std::optional<CaseResult> loaded = load(key);
    if (!loaded) {
      return machine_error("the cache lost " + folder_of(key).string() + " while it was being read");
    }
    loaded->request = request_.cases[results_.size()];
    loaded->cached = !made_now;
    results_.push_back(std::move(*loaded));
    if (on_case_) on_case_(results_.size() - 1, results_.back());
    return {};
  }

  const Problem& problem_;
  const ReferenceRequest& request_;
  fs::path root_;
  std::vector<std::string> keys_;   // of the request's cases; the same one may stand there twice
  std::vector<std::string> order_;  // the missing ones
  std::map<std::string, std::string>
      missing_;  // key -> where the ranks write it; empty once it is in the cache
  const OnCase& on_case_;
  std::vector<CaseResult> results_;
  Status status_;
};

}  // namespace

Result<ReferenceRun> run_reference(const Problem& problem, const ReferenceRequest& request,
                                   const OnCase& on_case) {
  return run_reference(problem, request, false, on_case);
}

Result<ReferenceRun> run_reference(const Problem& given, const ReferenceRequest& request, bool strict_oracle,
                                   const OnCase& on_case) {
  const auto start = std::chrono::steady_clock::now();
  // The runner does not run in the caller's working directory's terms.
  Problem problem = given;
  std::error_code code;
  problem.directory = fs::canonical(given.directory, code).string();
  if (code) return usage_error("there is no directory " + given.directory);
  problem.reference_path = (fs::path(problem.directory) / "reference.py").string();

  if (Status status = problem.check_world(request.world); !status) return status.error();
  if (request.cache_directory.empty())
    return machine_error("no folder was given for the reference's results");
  for (const ReferenceCase& one : request.cases) {
    if (Status status = problem.check(one.params, request.world); !status) return status.error();
    if (const auto dtype = problem.dtype(dtype_name(one.dtype)); !dtype) return dtype.error();
  }
  const Result<std::string> python = reference_python();
  if (!python) return python.error();
  const Result<PackageVersions> versions = package_versions(*python);
  if (!versions) return versions.error();
  const Result<std::string> hash = problem_hash(problem, *versions);
  if (!hash) return hash.error();

  const std::string cache = fs::absolute(request.cache_directory).lexically_normal().string();
  const fs::path root = fs::path(cache) / "reference";
  std::vector<std::string> keys;
  for (const ReferenceCase& one : request.cases)
    keys.push_back(case_key(*hash, one, request.world, request.oracle, strict_oracle));
  Delivery delivery(problem, request, root, std::move(keys), on_case);
  Result<Json> cases = delivery.missing_cases();
  if (!cases) return cases.error();
  if (!cases->empty()) {
    const Result<ScratchFolder> scratch = ScratchFolder::make(root.string());
    if (!scratch) return scratch.error();
    if (Status placed = delivery.place(*cases, scratch->path()); !placed) return placed.error();
    const auto n_cases = static_cast<long>(cases->size());
    const Json message = {{"problem", problem_json(problem)},
                          {"world", request.world},
                          {"limit_s", static_cast<double>(request.limit.count()) / 1000},
                          {"oracle", request.oracle},
                          {"strict_oracle", strict_oracle},
                          {"scratch", scratch->path()},
                          {"result", (fs::path(scratch->path()) / "result.json").string()},
                          {"cases", std::move(*cases)}};
    // The runner holds each call to the limit itself; this is for a runner that hangs.
    const auto whole_limit = request.limit * (2 * n_cases + 2) + std::chrono::minutes(5);
    const Result<Json> answer = run_python("reference_runner.py", message, whole_limit, [&] {
      const bool wanted = request.cancel == nullptr || !request.cancel->load();
      return wanted && delivery.advance().ok();
    });
    if (!delivery.status()) return delivery.status().error();
    if (!answer) {
      // Names the file as the caller did.
      Error error = answer.error();
      if (error.file.starts_with(problem.directory + "/")) {
        error.file = (fs::path(given.directory) / error.file.substr(problem.directory.size() + 1)).string();
      }
      return error;
    }
    if (!delivery.finish()) return delivery.status().error();  // while the scratch folder is still there
  }
  if (!delivery.finish()) return delivery.status().error();

  ReferenceRun run;
  run.problem = problem.name;
  run.world = request.world;
  run.python_version = versions->python;
  run.torch_version = versions->torch;
  run.cases = delivery.take();
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return run;
}

}  // namespace echolo
