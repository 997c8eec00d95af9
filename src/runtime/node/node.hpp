// One job on one virtual node: the machine, the engine of streams, the processes of the PEs, and the
// conductor that decides who goes on when (DESIGN §6, "Processes"). Single-threaded.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/job.hpp"
#include "runtime/node/candidate_driver.hpp"
#include "runtime/node/engine.hpp"
#include "runtime/node/process.hpp"
#include "runtime/node/site_table.hpp"
#include "runtime/protocol.hpp"
#include "shmem/fabric.hpp"
#include "vgpu/core/machine.hpp"

namespace echolo::runtime {

// What a handler says about the request it was given.
struct Answer {
  enum class Kind : std::uint8_t {
    kReply,      // the thread goes on with `error` and `payload`
    kBlocked,    // not yet; asked again when something has happened
    kMalformed,  // not a request of ours: the PE ends
  };
  Kind kind = Kind::kReply;
  int error = 0;
  std::uint32_t flags = 0;
  std::vector<std::uint8_t> payload;
  int fd = -1;  // passed along with the reply

  static Answer ok() { return {}; }
  static Answer fail(int error) { return {Kind::kReply, error, 0, {}, -1}; }
  static Answer blocked() { return {Kind::kBlocked, 0, 0, {}, -1}; }
  static Answer malformed() { return {Kind::kMalformed, 0, 0, {}, -1}; }
  static Answer of(wire::Writer& out) { return {Kind::kReply, 0, 0, out.take(), -1}; }
};

// Memory seen by an operation of a stream.
vgpu::Memory::Accessor host_accessor(const Op& op, bool any_pe);

class Node {
 public:
  explicit Node(JobSpec spec);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // An Error is the machine's fault (no sandbox, no such library); whatever the PEs do is a JobResult.
  Result<JobResult> run();

 private:
  struct Module {
    vgpu::ModuleId id = 0;
    std::map<std::string, std::uint64_t> dynamic_limits;  // kernel -> allowed by cudaFuncSetAttribute
  };
  struct PeState {
    PeProcess process;
    std::map<std::uint32_t, Module> modules;
    std::uint32_t next_module = 1;
    bool shmem_ready = false, shmem_ended = false;
    // Memory pools; 1 is the device's default one.
    struct Pool {
      std::uint64_t limit = 0, threshold = 0;  // 0: no limit
      std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
      std::uint64_t reuse[3] = {1, 1, 1};
      bool destroyed = false;
    };
    std::map<std::uint64_t, Pool> pools{{1, Pool{}}};
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> pooled;  // address -> pool, bytes
    // Memory without an address (cuMemCreate).
    struct Physical {
      std::uint64_t size = 0, mapped_at = 0;
      int references = 1;
      vgpu::Memory::Packet contents;  // of a former mapping
    };
    std::map<std::uint64_t, Physical> physical;
    std::uint64_t next_handle = 1;
    // Work for the service thread, in order; `served` counts what it has finished.
    struct Service {
      wire::ServiceKind kind{};
      std::uint64_t a = 0, b = 0, c = 0;
      std::vector<std::uint8_t> bytes;
      std::shared_ptr<std::vector<std::uint8_t>> result;  // of kReadHost
    };
    std::deque<Service> services;  // the front is being served where `serving`
    std::uint64_t n_asked = 0, n_served = 0;
    bool service_running = false, needs_service = false, serving = false;
    std::vector<std::string> notes;  // why calls were refused
    std::string first_refusal;       // the first call that returned an error
  };

  // ---- conductor.cpp ----
  Status prepare();
  void conduct();
  bool all_gone() const;
  // Waits until every PE is quiet (every host thread in a call, or asleep elsewhere). False: stop.
  bool wait_for_hosts();
  bool answer_hosts(bool* progress, bool held_back_too);
  bool answer_round(bool* progress, int held_back);
  int held_back_pe();
  bool run_device(bool* progress);
  bool still_stuck();
  void explain_stuck(bool livelock);
  bool read_all_ready(int timeout_ms);
  // ---- watch.cpp ----
  bool quiet(PeState& pe, std::chrono::steady_clock::time_point now, bool* computing) const;
  bool lost(PeProcess& process) const;
  void attend();
  bool may_poll(const PeState& pe) const;
  std::chrono::steady_clock::time_point owes_since(const PeProcess& process, bool* owes) const;
  std::chrono::milliseconds computed(PeProcess& process, std::chrono::steady_clock::time_point since) const;
  bool check_limits();
  // ---- conductor.cpp ----
  void greet(int pe, HostThread& thread);
  void take_note(int pe, const wire::RequestHeader& header, wire::Reader in, std::vector<std::uint8_t> bytes);
  void judge_last_words(int pe);
  void judge_end(int pe);
  bool judge_ends();
  void report_dereference(int pe, std::uint64_t address, const vgpu::Frame& where);
  void pe_ended(int pe);
  void stop(std::string status, std::string message);
  JobResult finish();

  // ---- calls_*.cpp ----
  Answer handle(int pe, HostThread& thread);
  Answer hello(int pe, HostThread& thread, wire::Reader in);
  Answer load_module(int pe, HostThread& thread, wire::Reader in);
  Answer unload_module(int pe, HostThread& thread, wire::Reader in);
  Answer kernel_names(int pe, wire::Reader in);
  Answer kernel_info(int pe, wire::Reader in);
  Answer variable(int pe, wire::Reader in);
  Answer function_limit(int pe, wire::Reader in);
  Answer occupancy(int pe, wire::Reader in);
  Answer launch(int pe, HostThread& thread, wire::Reader in);
  Answer allocate(int pe, HostThread& thread, wire::Reader in);
  Answer release(int pe, HostThread& thread, wire::Reader in);
  Answer release_async(int pe, HostThread& thread, wire::Reader in);
  Answer memory_info(int pe);
  Answer pointer_info(int pe, wire::Reader in);
  Answer copy(int pe, HostThread& thread, wire::Reader in);
  Answer fill(int pe, HostThread& thread, wire::Reader in);
  Answer pool_call(int pe, HostThread& thread, wire::Reader in);
  // An allocation has come from, or gone back to, a pool.
  int pool_takes(PeState& state, std::uint64_t pool, std::uint64_t bytes);
  void pool_gets_back(PeState& state, std::uint64_t address);
  Answer virtual_call(int pe, HostThread& thread, wire::Reader in);
  int map_physical(int pe, std::uint64_t address, std::uint64_t size, std::uint64_t handle);
  int unmap_physical(int pe, HostThread& thread, std::uint64_t address, std::uint64_t size);
  Answer ipc_memory(int pe, HostThread& thread, wire::Reader in);
  Answer ipc_event(int pe, wire::Reader in);
  Answer poll(int pe, HostThread& thread, const std::vector<OpId>& ops);
  Answer stream_call(int pe, HostThread& thread, wire::Reader in);
  Answer event_call(int pe, HostThread& thread, wire::Reader in);
  Answer graph_call(int pe, HostThread& thread, wire::Reader in);
  Answer stream_word(int pe, HostThread& thread, wire::Reader in);
  Answer host_function(int pe, HostThread& thread, wire::Reader in);
  Answer service(int pe, HostThread& thread, wire::Reader in);
  Answer shmem_init(int pe);
  Answer shmem_finalize(int pe, HostThread& thread);
  Answer shmem_call(int pe, HostThread& thread, wire::Reader in);
  Answer next_command(int pe, HostThread& thread, wire::Reader in);
  Answer graph_edit(int pe, HostThread& thread, wire::Reader in);
  Answer add_graph_node(int pe, HostThread& thread, wire::Reader in);
  Answer set_graph_node(int pe, HostThread& thread, wire::Reader in);
  // What the node's request asks for, by the handler that serves it in streams.
  Answer node_content(int pe, HostThread& thread, std::uint16_t op, std::string_view request,
                      Engine::NodeContent* content);
  // Appends to a stream, or hands the operation to the graph node that is being made.
  int place(int pe, HostThread& thread, StreamHandle stream, Op op, OpId* id);
  // Waits for `thread.pending.wait`, filled at the first attempt.
  Answer wait_for(int pe, HostThread& thread, const std::string& what);

  vgpu::Site host_site(int pe, const HostThread& thread, std::string role) const;
  Op make_op(int pe, const HostThread& thread, std::string what) const;
  Module* module_of(int pe, std::uint32_t number);
  // Work that needs the PE's service thread; returns its number (done when PeState::n_served reaches it).
  std::uint64_t serve(int pe, PeState::Service service);
  void remember_refusal(int pe, const HostThread& thread, int error);
  std::string call_text(int pe, const HostThread& thread) const;
  int refuse(int pe, const HostThread& thread, const Error& error);

  JobSpec spec_;
  std::unique_ptr<shmem::Fabric> fabric_;
  std::unique_ptr<vgpu::Machine> machine_;
  Engine engine_;
  std::optional<Op> placing_;  // while a graph node's operation is made
  SiteTable sites_;
  std::optional<CandidateDriver> driver_;
  std::vector<std::unique_ptr<PeState>> pes_;
  bool stopped_ = false;
  std::string stop_status_, stop_message_;
  double device_seconds_ = 0;  // wall time spent executing kernels
  std::chrono::steady_clock::time_point start_{};
  // How long the node has been there to listen: the patience that hosts get is counted in it, so that no host
  // pays for a copy of gigabytes which the node makes.
  std::chrono::steady_clock::duration attended_{};
  std::optional<std::chrono::steady_clock::time_point> last_poll_;
  std::uint64_t idle_polls_ = 0;        // answers to polls since the device last did anything
  std::uint64_t n_changes_ = 0;         // what idle_polls_ is judged by
  std::uint64_t executed_at_held_ = 0;  // warp instructions when the held back PE was last answered
  bool poll_round_ = false;             // this round answers polls whose work is not done
  friend class CandidateDriver;
};

}  // namespace echolo::runtime
