#include "judge/doctor.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "judge/sandbox.hpp"
#include "judge/scratch.hpp"
#include "judge/toolchain.hpp"
#include "problem/suite.hpp"
#include "reference/reference.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

constexpr unsigned long long kWantedBytes = 2ULL << 30U;
constexpr const char* kInstall = "./run.sh";
constexpr std::chrono::seconds kPatience{120};  // importing PyTorch takes 3 s on an idle machine

Result<Outcome> run(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.timeout = kPatience;
  Result<Outcome> outcome = run_command(command);
  if (outcome && outcome->interrupted) {
    Error error = machine_error("interrupted");
    error.kind = ErrorKind::kInterrupted;
    return error;
  }
  return outcome;
}

bool is_interruption(const Error& error) { return error.kind == ErrorKind::kInterrupted; }

Examination lack(std::string name, std::string detail, std::string mend, bool needed = true) {
  return {std::move(name), false, needed, std::move(detail), std::move(mend)};
}
Examination good(std::string name, std::string detail, bool needed = true) {
  return {std::move(name), true, needed, std::move(detail), ""};
}

Result<Examination> compiler() {
  Result<std::string> nvcc = find_nvcc();
  if (!nvcc) return lack("compiler", nvcc.error().message, kInstall);
  Result<Outcome> version = run({*nvcc, "--version"});
  if (!version)
    return is_interruption(version.error()) ? Result<Examination>(version.error())
                                            : lack("compiler", version.error().message, kInstall);
  static const std::regex release(R"(release (\d+)\.(\d+))");
  std::smatch found;
  if (!version->ok() || !std::regex_search(version->standard_output, found, release)) {
    return lack("compiler", *nvcc + " does not say its version", kInstall);
  }
  const std::string text = "nvcc " + std::string(found[1]) + "." + std::string(found[2]);
  if (std::stoi(found[1]) < 13) return lack("compiler", text + "; 13 or later is needed", kInstall);
  Result<Outcome> host = run({"c++", "--version"});
  if (!host && is_interruption(host.error())) return host.error();
  if (!host || !host->ok())
    return lack("compiler", text + ", but no host compiler", "sudo apt-get install g++");
  return good("compiler", text + ", " + std::string(trim(split(host->standard_output, '\n').front())));
}

Result<std::vector<Examination>> python() {
  Result<std::string> interpreter = reference_python();
  const auto both = [](const std::string& why) {
    return std::vector<Examination>{lack("torch", why, kInstall),
                                    lack("gloo", "unknown without torch", kInstall)};
  };
  if (!interpreter) return both(interpreter.error().message);
  Result<Outcome> outcome =
      run({*interpreter, "-c",
           "import numpy, safetensors, torch, torch.distributed as d\n"
           "print(torch.__version__)\nprint(d.is_available() and d.is_gloo_available())"});
  if (!outcome)
    return is_interruption(outcome.error()) ? Result<std::vector<Examination>>(outcome.error())
                                            : both(outcome.error().message);
  if (outcome->timed_out) {
    const std::string why =
        "not imported within " + std::to_string(kPatience.count()) + " s; the machine may be busy";
    return std::vector<Examination>{lack("torch", why, "run this again"),
                                    lack("gloo", "unknown without torch", "run this again")};
  }
  const std::vector<std::string> lines = split(trim(outcome->standard_output), '\n');
  if (!outcome->ok() || lines.size() < 2) {
    const std::string said(trim(outcome->standard_error));
    return both(said.empty() ? "does not import" : split(said, '\n').back());
  }
  std::vector<Examination> out = {good("torch", "PyTorch " + lines[0])};
  out.push_back(lines[1] == "True" ? good("gloo", "in PyTorch")
                                   : lack("gloo", "this PyTorch was built without gloo", kInstall));
  return out;
}

Result<Examination> sandbox(const std::string& store_directory) {
  Result<ScratchFolder> scratch =
      ScratchFolder::make((fs::path(store_directory) / "cache" / "work").string());
  if (!scratch) return lack("sandbox", scratch.error().message, "give another folder with --store DIR");
  SandboxedTool tool;
  tool.argv = {"/bin/sh", "-c", "echo inside > proof && cat proof"};
  tool.scratch = scratch->path();
  tool.timeout = std::chrono::seconds(20);
  Result<Outcome> outcome = run_sandboxed(tool);
  if (!outcome) {
    if (is_interruption(outcome.error())) return outcome.error();
    const bool missing = outcome.error().message.find("cannot run bwrap") != std::string::npos;
    return lack(
        "sandbox", outcome.error().message,
        missing ? "sudo apt-get install bubblewrap" : "sudo sysctl -w kernel.unprivileged_userns_clone=1");
  }
  if (!outcome->ok() || trim(outcome->standard_output) != "inside") {
    return lack("sandbox",
                "bubblewrap starts, but a program inside does not work: " +
                    std::string(trim(outcome->standard_error)),
                "sudo apt-get install --reinstall bubblewrap");
  }
  return good("sandbox", "bubblewrap, tried just now");
}

Examination virtual_node() {
  Result<std::string> binaries = binary_directory();
  if (!binaries) return lack("virtual node", binaries.error().message, "cmake --build build");
  std::error_code code;
  for (const char* name : {"echolo-node", "echolo-pe"}) {
    if (!fs::exists(fs::path(*binaries) / name, code)) {
      return lack("virtual node", std::string(name) + " is not beside echolo", "cmake --build build");
    }
  }
  for (const char* name : {"libcudart.so", "libnvshmem_host.so"}) {
    if (!fs::exists(fs::path(*binaries) / "lib" / "pe" / name, code)) {
      return lack("virtual node", std::string("lib/pe/") + name + " is not there", "cmake --build build");
    }
  }
  return good("virtual node", "node, PE host and libraries are built");
}

// 27413843968 -> "25.5 GiB".
std::string about_bytes(unsigned long long n_bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double amount = static_cast<double>(n_bytes) / 1024;
  // 1023.95 would be printed as 1024.0.
  while (unit < 3 && amount >= 1023.95) {
    amount /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

Examination disk(const std::string& store_directory) {
  fs::path path = fs::absolute(store_directory);
  std::error_code code;
  while (!fs::exists(path, code) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    return lack("disk", "cannot tell the free space of " + path.string(),
                "give another folder with --store DIR");
  }
  const unsigned long long free = static_cast<unsigned long long>(info.f_bavail) * info.f_frsize;
  const std::string text = about_bytes(free) + " free for the store in " + store_directory;
  if ((info.f_flag & ST_RDONLY) != 0) {
    return lack("disk", path.string() + " is read-only", "give another folder with --store DIR");
  }
  return free >= kWantedBytes ? good("disk", text)
                              : lack("disk", text + "; " + human_bytes(kWantedBytes) + " are wanted",
                                     "free some space, or give another folder with --store DIR");
}

Result<Examination> gpu() {
  Result<Outcome> outcome = run({"nvidia-smi", "-L"});
  if (!outcome && is_interruption(outcome.error())) return outcome.error();
  if (!outcome || !outcome->ok()) {
    return lack("gpu", "none seen; only measuring needs one",
                "install NVIDIA's driver on a machine with GPUs", false);
  }
  const std::vector<std::string> lines = split(trim(outcome->standard_output), '\n');
  return good("gpu",
              std::to_string(lines.size()) + ": " + lines.front().substr(0, lines.front().find(" (UUID")),
              false);
}

Examination nvshmem() {
  Result<std::string> home = echolo_home();
  std::error_code code;
  if (home) {
    for (const auto& entry : fs::directory_iterator(fs::path(*home) / ".venv" / "lib", code)) {
      const fs::path library =
          entry.path() / "site-packages" / "nvidia" / "nvshmem" / "lib" / "libnvshmem_host.so.3";
      if (fs::exists(library, code)) return good("nvshmem", "NVSHMEM 3, beside PyTorch", false);
    }
  }
  return lack("nvshmem", "not in .venv; only measuring needs it", kInstall, false);
}

}  // namespace

Result<std::vector<Examination>> examine_machine(const std::string& store_directory) {
  std::vector<Examination> all;
  Result<Examination> nvcc = compiler();
  if (!nvcc) return nvcc.error();
  all.push_back(std::move(*nvcc));
  Result<std::vector<Examination>> torch = python();
  if (!torch) return torch.error();
  all.insert(all.end(), torch->begin(), torch->end());
  Result<Examination> box = sandbox(store_directory);
  if (!box) return box.error();
  all.push_back(std::move(*box));
  all.push_back(virtual_node());
  all.push_back(disk(store_directory));
  Result<Examination> gpus = gpu();
  if (!gpus) return gpus.error();
  all.push_back(std::move(*gpus));
  all.push_back(nvshmem());
  return all;
}

bool nothing_needed_is_missing(const std::vector<Examination>& all) {
  return std::all_of(all.begin(), all.end(), [](const Examination& one) { return one.ok || !one.needed; });
}

nlohmann::json to_json(const std::vector<Examination>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const Examination& one : all) {
    list.push_back({{"name", one.name},
                    {"ok", one.ok},
                    {"needed", one.needed},
                    {"detail", one.detail},
                    {"mend", one.mend}});
  }
  return {{"ok", nothing_needed_is_missing(all)}, {"examined", std::move(list)}};
}

std::string render(const std::vector<Examination>& all, bool colour) {
  std::string out;
  for (const Examination& one : all) {
    const char* word = one.ok ? "ok" : one.needed ? "missing" : "absent";
    const char* code = one.ok ? "\x1b[32m" : one.needed ? "\x1b[31m" : "\x1b[33m";
    out += fmt::format("{}{:<8}{} {:<13} {}\n", colour ? code : "", word, colour ? "\x1b[0m" : "", one.name,
                       one.detail);
    if (!one.ok) out += fmt::format("{:<23}mend: {}\n", "", one.mend);
  }
  return out;
}

}  // namespace echolo::judge
