// Stream capture and graph launches.
#include <algorithm>

#include "runtime/node/engine_state.hpp"

namespace echolo::runtime {
namespace {
constexpr int kModeGlobal = 0, kModeRelaxed = 2;  // cudaStreamCaptureMode
}

void Engine::invalidate(Capture& capture) { capture.invalid = true; }

int Engine::begin_capture(int pe, int thread, StreamHandle handle, int mode) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  if (stream->id == kLegacyStream) return kCaptureUnsupported;
  if (stream->capture != nullptr) return static_cast<int>(kCaptureUnsupported);
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  auto capture = std::make_unique<Capture>();
  capture->id = next_capture_++;
  capture->origin = stream->id;
  capture->thread = thread;
  capture->mode = mode;
  capture->graph = std::make_shared<Graph>();
  capture->graph->handle = next_handle_ += 16;
  p.graphs[capture->graph->handle] = capture->graph;
  stream->capture = capture.get();
  stream->frontier.clear();
  p.captures.push_back(std::move(capture));
  return kOk;
}

int Engine::end_capture(int pe, int thread, StreamHandle handle, std::uint64_t* graph) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  Capture* capture = stream->capture;
  if (capture == nullptr) return kCaptureUnmatched;
  if (capture->mode != kModeRelaxed && capture->thread != thread) return kCaptureWrongThread;
  if (capture->origin != stream->id) return kCaptureUnmatched;
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  // Every node must come before the end of the origin stream, that is, every forked stream has been joined.
  std::vector<bool> reached(capture->graph->nodes.size(), false);
  std::vector<int> open = stream->frontier;
  while (!open.empty()) {
    const auto node = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    for (const int before : capture->graph->nodes[node].after) open.push_back(before);
  }
  int error = capture->invalid ? kCaptureInvalidated : kOk;
  for (std::size_t i = 0; i < reached.size() && error == kOk; ++i) {
    if (!reached[i] && capture->graph->nodes[i].captured) error = kCaptureUnjoined;
  }
  *graph = capture->graph->handle;
  if (error != kOk) p.graphs.erase(*graph);
  for (auto& [other_handle, other] : p.streams) {
    if (other.capture == capture) {
      other.capture = nullptr;
      other.frontier.clear();
    }
  }
  p.captures.erase(
      std::find_if(p.captures.begin(), p.captures.end(), [&](const auto& c) { return c.get() == capture; }));
  return error;
}

int Engine::capture_info(int pe, int thread, StreamHandle handle, CaptureInfo* info) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  const Capture* capture = stream->capture;
  if (capture == nullptr) return kOk;
  info->status = capture->invalid ? 2 : 1;  // cudaStreamCaptureStatus
  info->id = capture->id;
  info->graph = capture->graph->handle;
  for (const int index : stream->frontier)
    info->before.push_back(capture->graph->nodes[static_cast<std::size_t>(index)].id);
  return kOk;
}

int Engine::capture_after(int pe, int thread, StreamHandle handle, bool replace, const NodeIds& nodes) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  if (stream->capture == nullptr) return kBadValue;
  std::vector<int> frontier = replace ? std::vector<int>{} : stream->frontier;
  const Graph& graph = *stream->capture->graph;
  for (const std::uint64_t id : nodes) {
    const auto found = graph.index.find(id);
    if (found == graph.index.end()) return kBadValue;
    if (std::find(frontier.begin(), frontier.end(), found->second) == frontier.end())
      frontier.push_back(found->second);
  }
  stream->frontier = std::move(frontier);
  return kOk;
}

int Engine::exchange_capture_mode(int pe, int thread, int mode) {
  int& current = pes_[static_cast<std::size_t>(pe)]->capture_modes[thread];  // 0: global
  std::swap(current, mode);
  return mode;
}

int Engine::allow_unsafe(int pe, int thread) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto own = p.capture_modes.find(thread);
  const int own_mode = own == p.capture_modes.end() ? kModeGlobal : own->second;
  if (own_mode == kModeRelaxed) return kOk;
  int error = kOk;
  for (const auto& capture : p.captures) {
    const bool counts = capture->mode == kModeGlobal
                            ? own_mode == kModeGlobal || capture->thread == thread
                            : capture->mode != kModeRelaxed && capture->thread == thread;
    if (!counts) continue;
    invalidate(*capture);
    error = kCaptureUnsupported;
  }
  return error;
}

int Engine::allow_sync(int pe, int thread, StreamHandle handle) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  if (stream->capture != nullptr) {
    invalidate(*stream->capture);
    return kCaptureUnsupported;
  }
  return check_legacy(*pes_[static_cast<std::size_t>(pe)], *stream);
}

int Engine::instantiate(int pe, std::uint64_t graph, std::uint64_t* exec) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto it = p.graphs.find(graph);
  if (it == p.graphs.end()) return kBadValue;
  auto own = std::make_shared<Graph>();
  std::vector<int> ends;
  if (!flatten(*it->second, {}, *own, &ends)) return kBadValue;
  *exec = next_handle_ += 16;
  p.execs[*exec].graph = std::move(own);
  return kOk;
}

// What an event node does each time that its graph is launched, as a record or wait in a stream would now.
void Engine::at_event(Event& event, NodeType type, bool enabled, Op& op, std::vector<OpId>& before) {
  if (!enabled) return;
  if (type == NodeType::kWaitEvent) {
    if (event.recorded && event.capture == 0) before.push_back(event.last);
    return;
  }
  auto time = std::make_shared<std::uint64_t>(0);
  op.attempt = [time](Op& self) {
    *time = self.done_ns;
    return Step::kDone;
  };
  event.time = std::move(time);
  event.recorded = true;
  event.capture = 0;
}

int Engine::launch_graph(int pe, int thread, std::uint64_t handle, StreamHandle stream_handle,
                         const Op& like) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto it = p.execs.find(handle);
  Stream* stream = find_stream(pe, thread, stream_handle);
  if (it == p.execs.end()) return kBadValue;
  if (stream == nullptr) return kBadHandle;
  if (stream->capture != nullptr) {
    invalidate(*stream->capture);
    return kCaptureUnsupported;
  }
  if (const int error = check_legacy(p, *stream); error != kOk) return error;
  for (const Graph::Node& node : it->second.graph->nodes) {
    if (node.event != 0 && find_event(p, node.event) == nullptr) return kBadValue;
  }
  std::vector<OpId> after = order(p, *stream);
  if (it->second.last != 0) after.push_back(it->second.last);
  Op begin = like;
  begin.pe = pe;
  const std::vector<Graph::Node>& nodes = it->second.graph->nodes;
  std::vector<vgpu::AgentId>& agents = it->second.agents;
  if (order_of_events_ != nullptr) {
    begin.agent = agent_of(pe, *stream);
    begin.before = order_of_events_->release(order_of_events_->host(pe));
    // The first node after another goes on in its order; what branches off has an order of its own.
    std::vector<bool> extended(nodes.size(), false);
    for (std::size_t i = agents.size(); i < nodes.size(); ++i) {
      vgpu::AgentId agent;
      for (const int index : nodes[i].after) {
        const auto before = static_cast<std::size_t>(index);
        if (agent.value != 0 || extended[before]) continue;
        extended[before] = true;
        agent = agents[before];
      }
      agents.push_back(agent.value != 0 ? agent : order_of_events_->stream(pe, next_part_++));
    }
  }
  const OpId first = append(begin, after);
  std::vector<OpId> placed;
  std::vector<OpId> ends = {first};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Graph::Node& node = nodes[i];
    std::vector<OpId> before;
    for (const int index : node.after) before.push_back(placed[static_cast<std::size_t>(index)]);
    if (before.empty()) before.push_back(first);
    Op op = node.op;
    op.call = like.call;
    if (order_of_events_ != nullptr) op.agent = agents[i];
    if (!node.enabled) op.attempt = nullptr;
    if (node.event != 0) at_event(*find_event(p, node.event), node.type, node.enabled, op, before);
    placed.push_back(append(std::move(op), before));
    if (node.type == NodeType::kRecordEvent && node.enabled) find_event(p, node.event)->last = placed.back();
    ends.push_back(placed.back());
  }
  Op end = like;
  end.pe = pe;
  end.agent = begin.agent;
  stream->last = it->second.last = append(end, ends);
  stream->also_after.clear();
  if (stream->id == kLegacyStream) p.orphans.clear();
  return kOk;
}

int Engine::destroy_graph(int pe, std::uint64_t graph) {
  return pes_[static_cast<std::size_t>(pe)]->graphs.erase(graph) == 1 ? kOk : kBadValue;
}

int Engine::destroy_exec(int pe, std::uint64_t exec) {
  return pes_[static_cast<std::size_t>(pe)]->execs.erase(exec) == 1 ? kOk : kBadValue;
}

}  // namespace echolo::runtime
