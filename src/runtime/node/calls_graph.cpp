// Capture, graphs, and their nodes.
#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

constexpr std::uint32_t kMaxNodesNamed = 1U << 20U;

bool read_ids(wire::Reader& in, Engine::NodeIds* ids) {
  const std::uint32_t n = in.u32();
  if (n > kMaxNodesNamed) return false;
  for (std::uint32_t i = 0; i < n && in.ok(); ++i) ids->push_back(in.u64());
  return in.ok();
}

void write_ids(wire::Writer& out, const Engine::NodeIds& ids) {
  out.u32(static_cast<std::uint32_t>(ids.size()));
  for (const std::uint64_t id : ids) out.u64(id);
}

Answer answer_with(int error, wire::Writer& out) {
  return error == kOk ? Answer::of(out) : Answer::fail(error);
}

}  // namespace

int Node::place(int pe, HostThread& thread, StreamHandle stream, Op op, OpId* id) {
  if (!placing_) return engine_.submit(pe, thread.index, stream, std::move(op), id);
  if (id != nullptr) *id = 0;
  op.pe = pe;
  placing_ = std::move(op);
  return kOk;
}

Answer Node::graph_call(int pe, HostThread& thread, wire::Reader in) {
  wire::Writer out;
  int error = kOk;
  switch (thread.pending.op()) {
    case wire::Op::kCaptureBegin: {
      const StreamHandle stream = in.u64();
      const std::uint32_t mode = in.u32();
      if (!in.done() || mode > 2) return Answer::malformed();
      return Answer::fail(engine_.begin_capture(pe, thread.index, stream, static_cast<int>(mode)));
    }
    case wire::Op::kCaptureMode: {
      const std::uint32_t mode = in.u32();
      if (!in.done() || mode > 2) return Answer::malformed();
      out.u32(static_cast<std::uint32_t>(
          engine_.exchange_capture_mode(pe, thread.index, static_cast<int>(mode))));
      return Answer::of(out);
    }
    case wire::Op::kGraphLaunch: {
      const std::uint64_t exec = in.u64();
      const StreamHandle stream = in.u64();
      if (!in.done()) return Answer::malformed();
      return Answer::fail(
          engine_.launch_graph(pe, thread.index, exec, stream, make_op(pe, thread, "cudaGraphLaunch")));
    }
    default:
      break;
  }
  const std::uint64_t handle = in.u64();
  if (!in.done()) return Answer::malformed();
  std::uint64_t value = 0;
  switch (thread.pending.op()) {
    case wire::Op::kCaptureEnd:
      error = engine_.end_capture(pe, thread.index, handle, &value);
      break;
    case wire::Op::kGraphInstantiate:
      error = engine_.instantiate(pe, handle, &value);
      break;
    case wire::Op::kGraphDestroy:
      return Answer::fail(engine_.destroy_graph(pe, handle));
    case wire::Op::kGraphExecDestroy:
      return Answer::fail(engine_.destroy_exec(pe, handle));
    case wire::Op::kCaptureInfo: {
      Engine::CaptureInfo info;
      error = engine_.capture_info(pe, thread.index, handle, &info);
      out.u32(static_cast<std::uint32_t>(info.status)).u64(info.id).u64(info.graph);
      write_ids(out, info.before);
      return answer_with(error, out);
    }
    default:
      return Answer::malformed();
  }
  out.u64(value);
  return answer_with(error, out);
}

Answer Node::graph_edit(int pe, HostThread& thread, wire::Reader in) {
  const wire::Op what = thread.pending.op();
  wire::Writer out;
  if (what == wire::Op::kGraphCreate) {
    if (!in.done()) return Answer::malformed();
    out.u64(engine_.create_graph(pe));
    return Answer::of(out);
  }
  const std::uint64_t handle = in.u64();
  std::uint64_t value = 0;
  switch (what) {
    case wire::Op::kCaptureDepend: {
      const bool replace = in.u8() != 0;
      Engine::NodeIds nodes;
      if (!read_ids(in, &nodes) || !in.done()) return Answer::malformed();
      return Answer::fail(engine_.capture_after(pe, thread.index, handle, replace, nodes));
    }
    case wire::Op::kGraphClone: {
      if (!in.done()) return Answer::malformed();
      const int error = engine_.clone_graph(pe, handle, &value);
      out.u64(value);
      return answer_with(error, out);
    }
    case wire::Op::kGraphDestroyNode:
      if (!in.done()) return Answer::malformed();
      return Answer::fail(engine_.destroy_node(pe, handle));
    case wire::Op::kGraphNodes: {
      const bool roots = in.u8() != 0;
      if (!in.done()) return Answer::malformed();
      Engine::NodeIds nodes;
      const int error = engine_.graph_nodes(pe, handle, roots, &nodes);
      write_ids(out, nodes);
      return answer_with(error, out);
    }
    case wire::Op::kGraphEdges: {
      if (!in.done()) return Answer::malformed();
      Engine::NodePairs edges;
      const int error = engine_.graph_edges(pe, handle, &edges);
      out.u32(static_cast<std::uint32_t>(edges.size()));
      for (const auto& [from, to] : edges) out.u64(from).u64(to);
      return answer_with(error, out);
    }
    case wire::Op::kGraphNodeInfo: {
      if (!in.done()) return Answer::malformed();
      Engine::NodeInfo info;
      const int error = engine_.node_info(pe, handle, &info);
      out.u64(info.graph).u8(static_cast<std::uint8_t>(info.type)).u64(info.object).put(info.request_op);
      out.blob(info.request == nullptr ? nullptr : info.request->data(),
               info.request == nullptr ? 0 : info.request->size());
      write_ids(out, info.before);
      write_ids(out, info.after);
      return answer_with(error, out);
    }
    case wire::Op::kGraphDepend: {
      const bool remove = in.u8() != 0;
      const std::uint32_t n = in.u32();
      if (n > kMaxNodesNamed) return Answer::malformed();
      Engine::NodePairs edges;
      for (std::uint32_t i = 0; i < n && in.ok(); ++i) {
        const std::uint64_t from = in.u64();
        edges.emplace_back(from, in.u64());
      }
      if (!in.done()) return Answer::malformed();
      return Answer::fail(engine_.depend(pe, handle, remove, edges));
    }
    case wire::Op::kGraphFindInClone: {
      const std::uint64_t clone = in.u64();
      if (!in.done()) return Answer::malformed();
      const int error = engine_.find_in_clone(pe, handle, clone, &value);
      out.u64(value);
      return answer_with(error, out);
    }
    case wire::Op::kGraphUpdate: {
      const std::uint64_t graph = in.u64();
      if (!in.done()) return Answer::malformed();
      Engine::UpdateResult result;
      Answer answer = Answer::fail(engine_.update_exec(pe, handle, graph, &result));
      out.u8(static_cast<std::uint8_t>(result.result)).u64(result.node);
      answer.payload = out.take();
      return answer;
    }
    case wire::Op::kGraphEnable: {
      const std::uint64_t node = in.u64();
      const std::uint8_t state = in.u8();
      if (!in.done() || state > 2) return Answer::malformed();
      bool enabled = false;
      const int error = engine_.enable_node(pe, handle, node, state, &enabled);
      out.u8(enabled ? 1 : 0);
      return answer_with(error, out);
    }
    default:
      return Answer::malformed();
  }
}

Answer Node::node_content(int pe, HostThread& thread, std::uint16_t op, std::string_view request,
                          Engine::NodeContent* content) {
  switch (content->type) {
    case NodeType::kKernel:
    case NodeType::kCopy:
    case NodeType::kFill:
    case NodeType::kHost:
      break;
    default:
      content->op = make_op(pe, thread, thread.pending.header.name);
      return op == 0 && request.empty() ? Answer::ok() : Answer::malformed();
  }
  // The handler sees the request as if the operation had been asked for in a stream.
  const wire::RequestHeader header = thread.pending.header;
  std::vector<std::uint8_t> payload(request.begin(), request.end());
  thread.pending.header.op = op;
  std::swap(thread.pending.payload, payload);
  placing_.emplace();
  const wire::Reader inner(thread.pending.payload);
  Answer answer = Answer::malformed();
  const auto asked = static_cast<wire::Op>(op);
  if (content->type == NodeType::kKernel && asked == wire::Op::kLaunch) answer = launch(pe, thread, inner);
  if (content->type == NodeType::kCopy && asked == wire::Op::kCopy) answer = copy(pe, thread, inner);
  if (content->type == NodeType::kFill && asked == wire::Op::kFill) answer = fill(pe, thread, inner);
  if (content->type == NodeType::kHost && asked == wire::Op::kHostFunction)
    answer = host_function(pe, thread, inner);
  content->op = std::move(*placing_);
  placing_.reset();
  thread.pending.header = header;
  std::swap(thread.pending.payload, payload);
  return answer;
}

Answer Node::add_graph_node(int pe, HostThread& thread, wire::Reader in) {
  const std::uint64_t graph = in.u64();
  Engine::NodeIds before;
  if (!read_ids(in, &before)) return Answer::malformed();
  Engine::NodeContent content;
  content.type = in.choice(NodeType::kRecordEvent);
  content.object = in.u64();
  const auto op = in.get<std::uint16_t>();
  const std::string_view request = in.blob();
  if (!in.done()) return Answer::malformed();
  Answer made = node_content(pe, thread, op, request, &content);
  if (made.kind != Answer::Kind::kReply || made.error != kOk) return made;
  std::uint64_t node = 0;
  const int error = engine_.add_node(pe, graph, before, std::move(content), &node);
  wire::Writer out;
  out.u64(node);
  return answer_with(error, out);
}

Answer Node::set_graph_node(int pe, HostThread& thread, wire::Reader in) {
  const std::uint64_t exec = in.u64(), node = in.u64();
  Engine::NodeContent content;
  content.type = in.choice(NodeType::kRecordEvent);
  content.object = in.u64();
  const auto op = in.get<std::uint16_t>();
  const std::string_view request = in.blob();
  if (!in.done()) return Answer::malformed();
  Answer made = node_content(pe, thread, op, request, &content);
  if (made.kind != Answer::Kind::kReply || made.error != kOk) return made;
  return Answer::fail(engine_.set_node(pe, exec, node, std::move(content)));
}

}  // namespace echolo::runtime
