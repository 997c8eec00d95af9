// Streams, events and graphs of all PEs as one graph of operations: an operation starts when everything it
// comes after is done. Order of execution is the order of submission wherever that leaves a choice, so it
// repeats from run to run.
//
// Rules (CUDA programming guide, "Streams", "Default Stream", "Creating a Graph Using Stream Capture"): a
// stream's operations run in order; one in the legacy default stream comes after all that blocking streams
// were given before, and before all that they are given after; a captured stream only builds a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vgpu/finding.hpp"
#include "vgpu/meter/meter.hpp"
#include "vgpu/order/order.hpp"

namespace echolo::runtime {

using OpId = std::uint64_t;

enum class Step : std::uint8_t { kDone, kWaiting, kFault };

struct Op;
// Tries to do (or go on with) an operation. Copied for every launch of a graph, so state that it keeps starts
// afresh.
using Attempt = std::function<Step(Op&)>;

struct Op {
  OpId id = 0;
  int pe = 0;
  std::string what;           // "kernel add", "cudaMemcpyAsync"
  std::string waits_for;      // set by an attempt that waits: "signal >= 3"
  vgpu::Site site;            // the host call that submitted it
  int call = 0;               // of candidate_run, when it was submitted
  std::uint64_t done_ns = 0;  // set by an attempt where it isn't the time of its end
  Attempt attempt;            // empty: nothing to do
  vgpu::AgentId agent;        // in whose order it does its work: its stream, or a part of a graph
  vgpu::Clock before;         // what happened before it, as far as known
  bool begun = false;
  std::uint16_t request_op = 0;                              // wire::Op, and ...
  std::shared_ptr<const std::vector<std::uint8_t>> request;  // ... how it was asked for, without bulk data
  std::uint32_t unmet = 0;
  std::vector<OpId> dependents;
};

// cudaError_t values that the engine answers with.
enum EngineError : int {
  kOk = 0,
  kBadValue = 1,
  kBadHandle = 400,
  kNotReadyYet = 600,
  kGraphUpdateFailure = 910,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908
};

using StreamHandle = std::uint64_t;
inline constexpr StreamHandle kLegacyStream = 1,
                              kPerThreadStream = 2;  // cudaStreamLegacy, cudaStreamPerThread

// cudaGraphNodeType
enum class NodeType : std::uint8_t {
  kKernel = 0,
  kCopy = 1,
  kFill = 2,
  kHost = 3,
  kChild = 4,
  kEmpty = 5,
  kWaitEvent = 6,
  kRecordEvent = 7
};

class Engine {
 public:
  explicit Engine(int n_pes);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Who keeps track of what happens before what; without, nobody does.
  void set_order(vgpu::Order* order) { order_of_events_ = order; }
  // Who is told which operation comes after which, for the time model; without, nobody is.
  void set_meter(vgpu::Meter* meter) { meter_ = meter; }
  // The host waited for these, and knows what they did.
  void learn(int pe, const std::vector<OpId>& ids);

  // ---- streams; `thread` numbers the calling host thread of the PE ----
  StreamHandle create_stream(int pe, bool non_blocking, int priority);
  int destroy_stream(int pe, StreamHandle stream);
  struct StreamInfo {
    bool non_blocking = false;
    int priority = 0;
    std::uint64_t id = 0;
  };
  int stream_info(int pe, int thread, StreamHandle stream, StreamInfo* info);

  // Appends to a stream, or to the graph being captured from it (then *id is 0).
  int submit(int pe, int thread, StreamHandle stream, Op op, OpId* id = nullptr);
  bool is_capturing(int pe, int thread, StreamHandle stream);
  // May a call that would synchronise or that CUDA calls unsafe be made now? Otherwise
  // cudaErrorStreamCapture*, and the captures it breaks are invalidated.
  int allow_unsafe(int pe, int thread);
  int allow_sync(int pe, int thread, StreamHandle stream);

  // What is to be waited for by the calls that synchronise; empty: nothing.
  int last_of(int pe, int thread, StreamHandle stream, std::vector<OpId>* ops);
  std::vector<OpId> last_of_device(int pe);
  bool done(OpId id) const { return id == 0 || !ops_.contains(id); }
  bool done(const std::vector<OpId>& ids) const;

  // ---- events ----
  std::uint64_t create_event(int pe, bool timing, bool shareable = false);
  // kOk where the event may be opened by other PEs; then its handle for one of them.
  int shareable_event(int pe, std::uint64_t event);
  int open_event(int pe, int owner, std::uint64_t event, std::uint64_t* handle);
  int destroy_event(int pe, std::uint64_t event);
  // `external`: a stream under capture gets a node that records or waits when the graph runs.
  int record_event(int pe, int thread, std::uint64_t event, StreamHandle stream, const Op& like,
                   bool external = false);
  int wait_event(int pe, int thread, StreamHandle stream, std::uint64_t event, const Op& like,
                 bool external = false);
  // kOk and the operation to wait for (0: never recorded, which counts as done).
  int event_operation(int pe, std::uint64_t event, OpId* id);
  int elapsed(int pe, std::uint64_t start, std::uint64_t end, std::uint64_t* ns);

  // ---- graphs ----
  int begin_capture(int pe, int thread, StreamHandle stream, int mode);
  int end_capture(int pe, int thread, StreamHandle stream, std::uint64_t* graph);
  struct CaptureInfo {
    int status = 0;
    std::uint64_t id = 0, graph = 0;
    std::vector<std::uint64_t> before;
  };
  int capture_info(int pe, int thread, StreamHandle stream, CaptureInfo* info);
  // What the next captured operation of the stream comes after: also these, or only these.
  int capture_after(int pe, int thread, StreamHandle stream, bool replace,
                    const std::vector<std::uint64_t>& nodes);
  int exchange_capture_mode(int pe, int thread, int mode);
  int instantiate(int pe, std::uint64_t graph, std::uint64_t* exec);
  int launch_graph(int pe, int thread, std::uint64_t exec, StreamHandle stream, const Op& like);
  int destroy_graph(int pe, std::uint64_t graph);
  int destroy_exec(int pe, std::uint64_t exec);
  // Graphs by nodes (graph_build.cpp). What names no graph or node of the PE is kBadValue.
  using NodeIds = std::vector<std::uint64_t>;
  using NodePairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  struct NodeContent {
    NodeType type = NodeType::kEmpty;
    std::uint64_t object = 0;  // event or child graph
    Op op;
  };
  std::uint64_t create_graph(int pe);
  int clone_graph(int pe, std::uint64_t graph, std::uint64_t* clone);
  int add_node(int pe, std::uint64_t graph, const NodeIds& before, NodeContent content, std::uint64_t* node);
  // In its graph where `exec` is 0. The type can't change.
  int set_node(int pe, std::uint64_t exec, std::uint64_t node, NodeContent content);
  int destroy_node(int pe, std::uint64_t node);
  int graph_nodes(int pe, std::uint64_t graph, bool roots, NodeIds* nodes);
  int graph_edges(int pe, std::uint64_t graph, NodePairs* edges);
  struct NodeInfo {
    std::uint64_t graph = 0, object = 0;
    NodeType type{};
    std::uint16_t request_op = 0;
    std::shared_ptr<const std::vector<std::uint8_t>> request;
    NodeIds before, after;
  };
  int node_info(int pe, std::uint64_t node, NodeInfo* info);
  int depend(int pe, std::uint64_t graph, bool remove, const NodePairs& edges);
  int find_in_clone(int pe, std::uint64_t node, std::uint64_t clone, std::uint64_t* found);
  struct UpdateResult {
    int result = 0;  // cudaGraphExecUpdateResult
    std::uint64_t node = 0;
  };
  int update_exec(int pe, std::uint64_t exec, std::uint64_t graph, UpdateResult* result);
  int enable_node(int pe, std::uint64_t exec, std::uint64_t node, int what, bool* enabled);

  // ---- progress ----
  // Attempts everything that may run. True where at least one operation ended; *fault where one failed.
  bool pump(std::uint64_t now_ns, bool* fault);
  bool idle() const { return ops_.empty(); }
  bool idle(int pe) const;
  // Operations that have started and wait, for the wait graph; in order of submission.
  std::vector<const Op*> waiting() const;

 private:
  struct Stream;
  struct Event;
  struct Graph;
  struct Exec;
  struct Capture;
  struct Pe;

  Stream* find_stream(int pe, int thread, StreamHandle stream);
  Event* find_event(Pe& pe, std::uint64_t handle);
  OpId append(Op op, const std::vector<OpId>& after);
  std::vector<OpId> order(Pe& pe, Stream& stream) const;  // what a new operation of the stream comes after
  void finish(OpId id);
  vgpu::AgentId agent_of(int pe, const Stream& stream);
  void forget_ends();
  int check_legacy(Pe& pe, const Stream& stream);
  void invalidate(Capture& capture);
  static void at_event(Event& event, NodeType type, bool enabled, Op& op, std::vector<OpId>& before);
  int put_node(Graph& graph, Op op, std::vector<int> after, NodeType type);
  void capture_op(Stream& stream, Op op, NodeType type, std::uint64_t event);
  std::shared_ptr<Graph> find_graph(Pe& pe, std::uint64_t handle);
  std::shared_ptr<Graph> graph_of_node(Pe& pe, std::uint64_t node, int* index);
  bool too_large(const Graph& graph, int depth, std::size_t* n) const;
  std::shared_ptr<Graph> copy_of(const Graph& graph);
  int fill_node(Pe& pe, Graph& graph, int index, NodeContent& content);
  // Appends what `graph` does behind the nodes `before` of `out`; false: it has a cycle.
  bool flatten(const Graph& graph, const std::vector<int>& before, Graph& out, std::vector<int>* ends) const;

  std::vector<std::unique_ptr<Pe>> pes_;
  std::map<OpId, Op> ops_;
  std::set<OpId> ready_;
  OpId next_op_ = 1;
  std::uint64_t next_handle_ = 0x10000;
  std::uint64_t next_capture_ = 1;
  vgpu::Order* order_of_events_ = nullptr;
  vgpu::Meter* meter_ = nullptr;
  std::map<OpId, vgpu::Clock> ends_;       // of operations that are done and that others may still come after
  std::uint64_t next_part_ = 1ULL << 62U;  // parts of graphs, numbered as streams are
};

}  // namespace echolo::runtime
