#include "judge/compile.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "judge/assembly.hpp"
#include "judge/elf.hpp"
#include "judge/sandbox.hpp"
#include "judge/scratch.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

constexpr const char* kToolkit = "/echolo/cuda";
constexpr const char* kInclude = "/echolo/include";
constexpr const char* kLibraries = "/echolo/lib";  // with pe/, whose linker names point back into it
constexpr const char* kLinkerNames = "/echolo/lib/pe";
constexpr const char* kProgramFolder = "/program";
constexpr const char* kMeta = "result.json";
// Part of every cache key: a change in how results are made or written makes the old ones strangers.
constexpr const char* kFormat = "1";

std::string output_name(SourceKind kind) {
  return kind == SourceKind::kCandidate ? "candidate.so" : "program";
}

std::vector<std::string> flags_of(const CompileRequest& request) {
  std::vector<std::string> flags = {"-std=c++17",
                                    "-gencode",
                                    "arch=compute_90a,code=compute_90a",
                                    "-lineinfo",
                                    "-cudart",
                                    "none",
                                    "--no-compress",
                                    "-Xcompiler",
                                    "-fPIC,-g",
                                    "-I",
                                    std::string(kInclude) + "/nvshmem",
                                    "-I",
                                    kInclude};
  for (const KnobValue& knob : request.knobs) {
    flags.push_back("-DKNOB_" + knob.name + "=" + std::to_string(knob.value));
  }
  if (request.kind == SourceKind::kCandidate) flags.emplace_back("-shared");
  for (const char* flag : {"-L", kLinkerNames, "-lcudart", "-lnvshmem_host", "-Xlinker", "-z,defs"}) {
    flags.emplace_back(flag);
  }
  return flags;
}

std::string cache_key(const CompileRequest& request, const Toolchain& toolchain) {
  Sha256 hash;
  hash.field(kFormat).field(toolchain.fingerprint).field(output_name(request.kind)).field(request.text);
  for (const std::string& flag : flags_of(request)) hash.field(flag);
  if (request.kind == SourceKind::kProgram) {
    // A program may include any header of its folder.
    std::error_code code;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(request.folder, code)) {
      const std::string extension = entry.path().extension().string();
      const bool header =
          extension == ".h" || extension == ".hpp" || extension == ".cuh" || extension == ".inl";
      if (header && entry.is_regular_file(code)) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const Result<std::string> text = read_file(file.string());
      hash.field(file.string()).field(text ? *text : "");
    }
  }
  return hash.hex();
}

std::string read_or_empty(const fs::path& path) {
  Result<std::string> text = read_file(path.string());
  return text ? std::move(*text) : std::string();
}

Result<CompileResult> from_cache(const fs::path& folder, SourceKind kind) {
  Result<std::string> text = read_file((folder / kMeta).string());
  if (!text) return text.error();
  const nlohmann::json meta = nlohmann::json::parse(*text, nullptr, false);
  if (meta.is_discarded()) return machine_error((folder / kMeta).string() + " is damaged");
  try {
    CompileResult result;
    meta.at("status").get_to(result.status);
    meta.at("log").get_to(result.log);
    meta.at("gates").get_to(result.gates);
    meta.at("register_counts").get_to(result.register_counts);
    if (result.status == "ok") result.output = (folder / output_name(kind)).string();
    std::error_code code;
    if (result.status == "ok" && !fs::exists(result.output, code)) {
      return machine_error(result.output + " is missing");
    }
    result.cached = true;
    return result;
  } catch (const nlohmann::json::exception& fault) {
    return machine_error((folder / kMeta).string() + " is damaged: " + fault.what());
  }
}

class Compilation {
 public:
  Compilation(const CompileRequest& request, const Toolchain& toolchain, std::string scratch)
      : request_(request), toolchain_(toolchain), scratch_(std::move(scratch)) {}

  // Fills `result` apart from where its output will lie.
  bool repeatable() const { return repeatable_; }  // false: a busy machine may have been the reason
  Status run(CompileResult& result) {
    result.status = "compile_error";
    fs::create_directory(scratch_ / "keep");
    std::vector<std::string> argv = {std::string(kToolkit) + "/bin/nvcc", source()};
    const std::vector<std::string> flags = flags_of(request_);
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(),
                {"--keep", "--keep-dir", std::string(kScratch) + "/keep", "-o", output_name(request_.kind)});
    Result<Outcome> built = in_sandbox(std::move(argv));
    if (!built) return built.error();
    const std::string stem =
        request_.kind == SourceKind::kCandidate ? "candidate" : fs::path(request_.path).stem().string();
    const fs::path ptx_path = scratch_ / "keep" / (stem + ".ptx");
    const std::string ptx = read_or_empty(ptx_path);
    result.log = explain_log(built->standard_output + built->standard_error, request_, ptx);
    if (built->timed_out) {
      repeatable_ = false;
      result.log += request_.path + ": error: the compiler was stopped after " +
                    std::to_string(request_.timeout.count() / 1000) + " s\n";
      return {};
    }
    if (!built->ok()) {
      if (trim(result.log).empty())
        result.log = request_.path + ": error: the compiler ended without a word\n";
      return {};
    }
    if (request_.kind == SourceKind::kCandidate) {
      if (Status looked = look_at_output(result); !looked) return looked;
      if (refusal(result.gates) != nullptr) {
        result.status = "refused";
        return {};
      }
    }
    if (!ptx.empty()) {
      Result<Outcome> assembled =
          in_sandbox({std::string(kToolkit) + "/bin/ptxas", "-c", "-v", "-arch=sm_90a",
                      std::string(kScratch) + "/keep/" + stem + ".ptx", "-o",
                      std::string(kScratch) + "/keep/registers.cubin"});
      if (!assembled) return assembled.error();
      const std::string said = assembled->standard_output + assembled->standard_error;
      if (!assembled->ok()) {
        result.log += explain_log(said, request_, ptx);
        return {};
      }
      result.register_counts = read_register_counts(said);
    }
    result.status = "ok";
    return {};
  }

 private:
  std::string source() const {
    return request_.kind == SourceKind::kCandidate
               ? std::string(kSandboxSource)
               : std::string(kProgramFolder) + "/" + fs::path(request_.path).filename().string();
  }

  Result<Outcome> in_sandbox(std::vector<std::string> argv) {
    SandboxedTool tool;
    tool.argv = std::move(argv);
    tool.scratch = scratch_.string();
    tool.timeout = request_.timeout;
    tool.read_only = {{toolchain_.root, kToolkit},
                      {toolchain_.include_dir, kInclude},
                      {fs::path(toolchain_.library_dir).parent_path().string(), kLibraries}};
    if (request_.kind == SourceKind::kProgram) tool.read_only.emplace_back(request_.folder, kProgramFolder);
    Result<Outcome> outcome = run_sandboxed(tool);
    if (outcome && !outcome->ok() && disk_was_full(*outcome)) {
      return machine_error("the disk is full: the compiler cannot write to " + scratch_.string(),
                           "free some disk space, or give another folder with --store");
    }
    return outcome;
  }

  // The tools' own words are not enough: a candidate may say the same in an #error.
  bool disk_was_full(const Outcome& outcome) const {
    constexpr std::uintmax_t kPlenty = std::uintmax_t{64} << 20U;  // tools remove what they could not finish
    std::error_code code;
    const fs::space_info space = fs::space(scratch_, code);
    return !code && space.available < kPlenty &&
           (outcome.standard_output + outcome.standard_error).find("No space left on device") !=
               std::string::npos;
  }

  // What text alone could not tell: what the host compiler got, and what the library asks of others.
  Status look_at_output(CompileResult& result) {
    const int line = assembly_line_in_host_code(read_or_empty(scratch_ / "keep" / "candidate.cudafe1.cpp"),
                                                kSandboxSource);
    result.gates.push_back({"host_code", line == 0 ? "passed" : "refused",
                            line == 0 ? "the host code that nvcc made holds no assembly of the candidate"
                                      : request_.path + ":" + std::to_string(line) +
                                            ": inline assembly reaches the host compiler"});
    Result<DynamicSymbols> symbols = read_dynamic_symbols((scratch_ / output_name(request_.kind)).string());
    if (!symbols) return symbols.error();
    std::string fault = forbidden_import(symbols->imported);
    if (!fault.empty())
      fault = request_.path + ": calls " + fault + ", which is no part of what a candidate may use";
    for (const char* name : {"candidate_create", "candidate_run", "candidate_destroy"}) {
      if (fault.empty() && !std::binary_search(symbols->exported.begin(), symbols->exported.end(), name)) {
        fault = request_.path + ": does not export " + name + " with extern \"C\"";
      }
    }
    result.gates.push_back(
        {"libraries", fault.empty() ? "passed" : "refused",
         fault.empty() ? std::to_string(symbols->imported.size()) + " imported functions, all allowed"
                       : fault});
    return {};
  }

  const CompileRequest& request_;
  const Toolchain& toolchain_;
  fs::path scratch_;
  bool repeatable_ = true;
};

}  // namespace

Result<CompileResult> compile(const CompileRequest& request, const Toolchain& toolchain) {
  const fs::path target = fs::path(request.cache_directory) / cache_key(request, toolchain);
  std::error_code code;
  if (fs::exists(target / kMeta, code)) {
    if (Result<CompileResult> cached = from_cache(target, request.kind); cached) return cached;
    fs::remove_all(target, code);
  }
  Result<ScratchFolder> scratch = ScratchFolder::make(request.cache_directory);
  if (!scratch) return scratch.error();
  const fs::path folder = scratch->path();
  if (Status written = write_file_atomically((folder / kSandboxSource).string(), request.text); !written) {
    return written.error();
  }
  CompileResult result;
  Compilation compilation(request, toolchain, folder.string());
  if (Status ran = compilation.run(result); !ran) return ran.error();
  if (!compilation.repeatable()) return result;

  fs::remove_all(folder / "keep", code);
  const nlohmann::json meta = {{"status", result.status},
                               {"log", result.log},
                               {"gates", result.gates},
                               {"register_counts", result.register_counts}};
  if (Status written = write_file_atomically((folder / kMeta).string(), meta.dump(1)); !written)
    return written.error();
  if (Status kept = scratch->keep_as(target.string()); !kept) return kept.error();
  if (result.status == "ok") result.output = (target / output_name(request.kind)).string();
  return result;
}

}  // namespace echolo::judge
