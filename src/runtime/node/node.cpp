// The start and the end of a job.
#include "runtime/node/node.hpp"

#include "shmem/fabric_rules.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/subprocess.hpp"
#include "base/text.hpp"

namespace echolo::runtime {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string absolute(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return {};
  std::string out = real;
  std::free(real);
  return out;
}

const char* signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "?" : name;
}

}  // namespace

Node::Node(JobSpec spec) : spec_(std::move(spec)), engine_(spec_.world) {}

Node::~Node() {
  for (auto& pe : pes_) kill_pe(pe->process);
}

Status Node::prepare() {
  if (spec_.world < 1 || spec_.world > vgpu::kMaxPes) {
    return usage_error("a virtual node has 1 to " + std::to_string(vgpu::kMaxPes) + " PEs, not " +
                       std::to_string(spec_.world));
  }
  const Result<const shmem::FabricRules*> rules = shmem::find_fabric(spec_.fabric);
  if (!rules.ok()) return rules.error();
  const Result<vgpu::Policy> policy = vgpu::parse_policy(spec_.policy);
  if (!policy.ok()) return policy.error();
  shmem::FabricConfig fabric;
  fabric.n_pes = spec_.world;
  fabric.fabric = spec_.fabric;
  fabric.timing = *policy == vgpu::Policy::kLazyDelivery    ? shmem::Timing::kLazy
                  : *policy == vgpu::Policy::kEagerDelivery ? shmem::Timing::kEager
                                                            : shmem::Timing::kMixed;
  fabric.seed = (spec_.seed * 0x9e3779b97f4a7c15ULL + spec_.policy_seed) ^ 0x6661627269630000ULL;
  fabric_ = std::make_unique<shmem::Fabric>(fabric);
  vgpu::MachineConfig config;
  config.n_pes = spec_.world;
  // One generator decides memory layout and schedule; a job names them apart.
  config.seed = spec_.seed * 0x9e3779b97f4a7c15ULL + spec_.policy_seed;
  config.policy = *policy;
  config.peers_reachable = (*rules)->peers_reachable;
  config.checkers = {spec_.check_races, spec_.check_unwritten};
  Result<std::unique_ptr<vgpu::Machine>> machine = vgpu::Machine::create(config, fabric_.get());
  if (!machine.ok()) return machine.error();
  machine_ = std::move(*machine);
  if (!spec_.trace.empty()) machine_->start_trace(spec_.trace);
  if (!spec_.work_file.empty()) machine_->start_meter();
  fabric_->attach(machine_->memory(), machine_->findings());
  engine_.set_order(&machine_->memory().order());
  engine_.set_meter(machine_->memory().meter());
  machine_->on_output([this](int pe, const std::string& text) {
    PeProcess& process = pes_[static_cast<std::size_t>(pe)]->process;
    process.take_output();  // what the host printed before the kernel comes first
    process.append_output(text);
  });
  if (spec_.is_candidate) {
    Result<CandidateDriver> driver = CandidateDriver::create(spec_, *machine_, engine_);
    if (!driver.ok()) return driver.error();
    driver_ = std::move(*driver);
    driver_->on_given_back([this](std::uint64_t base, std::uint64_t bytes, const Op& at) {
      if (bytes == 0) return;
      vgpu::Site site = at.site;
      site.role = "end of the call";
      fabric_->released(base, bytes, {}, site);
    });
  }
  if (spec_.sandbox) {
    const std::string problem = sandbox_problem();
    if (!problem.empty()) {
      return machine_error(
          "no sandbox for the PEs: " + problem,
          "install bubblewrap and allow unprivileged user namespaces, or trust the code: --no-sandbox");
    }
  }
  const char* override_dir = std::getenv("ECHOLO_BIN_DIR");
  const std::string bin =
      override_dir != nullptr ? absolute(override_dir) : folder_of(absolute("/proc/self/exe"));
  const std::string target =
      absolute(spec_.is_candidate ? spec_.candidate.library : spec_.program.executable);
  if (target.empty()) {
    return usage_error("no such file: " +
                       (spec_.is_candidate ? spec_.candidate.library : spec_.program.executable));
  }
  LaunchPlan plan;
  plan.sandbox = spec_.sandbox;
  plan.directory = folder_of(target);
  plan.readable = {bin + "/lib"};
  if (spec_.is_candidate) {
    plan.argv = {bin + "/echolo-pe", target};
    plan.readable.push_back(bin + "/echolo-pe");
    if (absolute(bin + "/echolo-pe").empty())
      return machine_error(bin + "/echolo-pe is missing", "build it: ./run.sh");
  } else {
    plan.argv = {target};
    plan.argv.insert(plan.argv.end(), spec_.program.arguments.begin(), spec_.program.arguments.end());
  }
  plan.cpu_limit = std::chrono::duration_cast<std::chrono::seconds>(spec_.timeout) + std::chrono::seconds(10);
  for (int pe = 0; pe < spec_.world; ++pe) {
    pes_.push_back(std::make_unique<PeState>());
    PeProcess& process = pes_.back()->process;
    process.pe = pe;
    process.output_limit = spec_.output_limit;
    const std::string rank = std::to_string(pe), size = std::to_string(spec_.world);
    plan.env = {{"PATH", "/usr/bin:/bin"},
                {"HOME", "/tmp"},
                {"LANG", "C.UTF-8"},
                {"LD_LIBRARY_PATH", bin + "/lib:" + bin + "/lib/pe"},
                {"PMI_RANK", rank},
                {"PMI_SIZE", size},
                {"RANK", rank},
                {"WORLD_SIZE", size},
                {"LOCAL_RANK", rank},
                {"LOCAL_WORLD_SIZE", size},
                {"OMPI_COMM_WORLD_RANK", rank},
                {"OMPI_COMM_WORLD_SIZE", size},
                {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
                {"ECHOLO_PE", rank},
                {"ECHOLO_N_PES", size}};
    if (!spec_.is_candidate) {
      for (const auto& [key, value] : spec_.program.env) plan.env[key] = value;
    }
    if (Status status = start_pe(plan, process); !status.ok()) return status;
  }
  return {};
}

void Node::stop(std::string status, std::string message) {
  if (stopped_) return;
  stopped_ = true;
  stop_status_ = std::move(status);
  stop_message_ = std::move(message);
}

Result<JobResult> Node::run() {
  start_ = std::chrono::steady_clock::now();
  if (const Status status = prepare(); !status.ok()) return status.error();
  conduct();
  return finish();
}

void Node::pe_ended(int pe) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  PeProcess& process = state.process;
  process.take_output();
  reap(process, &process.wait_status);
  process.ended = true;
  for (auto& [index, thread] : process.threads) thread->in_call = false;
  process.threads.clear();
  fabric_->pe_gone(pe, state.shmem_ended ? "has called nvshmem_finalize" : "has ended");
}

// How a PE ended, as far as its process's status and what it said tell.
void Node::judge_end(int pe) {
  PeProcess& process = pes_[static_cast<std::size_t>(pe)]->process;
  if (process.reported) return;
  process.reported = true;
  const int status = process.wait_status;
  const std::string phase = driver_ && !driver_->phase(pe).empty() ? " inside " + driver_->phase(pe) : "";
  PeReport& report = process.report;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  // Under bubblewrap a signal arrives as exit code 128 + signal.
  if (spec_.sandbox && !process.exited && code > 128 && code < 128 + 65) {
    signal = code - 128;
    code = 0;
  }
  if (process.exited) code = process.exit_code;
  const bool good = process.good_end || (!spec_.is_candidate && signal == 0 && code == 0);
  if (good && code == 0) {
    report.end = PeEnd::kOk;
    return;
  }
  report.end = signal != 0 ? PeEnd::kSignal : PeEnd::kExitCode;
  report.code = signal != 0 ? signal : code;
  if (signal != 0) {
    report.detail = std::string("SIG") + signal_name(signal) + phase;
  } else if (process.exited) {
    report.detail = "exit(" + std::to_string(code) + ")" + phase;
  } else {
    report.detail = "ended with code " + std::to_string(code) + phase;
  }
  stop("crashed", "PE " + std::to_string(pe) + ": " + report.detail);
}

JobResult Node::finish() {
  JobResult result;
  vgpu::FindingLog& log = machine_->findings();
  bool clean = !stopped_ && log.empty();
  for (auto& pe : pes_) {
    PeProcess& process = pe->process;
    if (!process.ended) {
      process.take_output();
      if (!process.reported) {
        process.report.end = PeEnd::kKilled;
        process.report.detail = "stopped by the node";
      }
      clean = false;
    }
    kill_pe(process);
    process.take_output();
  }
  if (clean) vgpu::report_leaks(machine_->memory(), log);
  result.findings = log.all();
  std::vector<std::string*> texts = {&stop_message_};
  for (auto& pe : pes_) {
    PeReport report = pe->process.report;
    report.output = printable(report.output);
    for (const std::string& note : pe->notes) {
      // A refused call explains what comes after it.
      if (report.detail.size() < 4096) report.detail += (report.detail.empty() ? "" : "; ") + note;
    }
    result.pes.push_back(std::move(report));
  }
  for (PeReport& report : result.pes) texts.push_back(&report.detail);
  result.trace = machine_->trace();
  result.trace_skipped = machine_->trace_skipped();
  for (vgpu::TraceEvent& event : result.trace) texts.push_back(&event.address);
  sites_.resolve(result.findings, texts);
  const auto root = std::find_if(result.findings.begin(), result.findings.end(),
                                 [](const vgpu::Finding& f) { return f.kind != vgpu::FindingKind::kLeak; });
  if (root != result.findings.end()) {
    result.status = vgpu::status_of(root->kind);
  } else if (stopped_) {
    result.status = stop_status_;
    result.message = stop_message_;
  } else if (driver_ && !driver_->write_error().empty()) {
    result.status = "infra";
    result.message = driver_->write_error();
  } else {
    result.status = "correct";
  }
  if (!spec_.work_file.empty()) {
    if (Status written = vgpu::write_work(machine_->metered(), spec_.work_file); !written) {
      result.status = "infra";
      result.message = written.error().render();
    }
  }
  result.modelled_ns = machine_->now_ns();
  if (driver_) result.call_modelled_ns = driver_->modelled_ns();
  const vgpu::Machine::Counters counters = machine_->counters();
  result.warp_instructions = counters.warp_instructions;
  result.switches = counters.switches;
  result.lane_instructions = counters.lane_instructions;
  result.device_seconds = device_seconds_;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return result;
}

}  // namespace echolo::runtime
