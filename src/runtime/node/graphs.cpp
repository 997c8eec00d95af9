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
  if (error == kOk && std::find(reached.begin(), reached.end(), false) != reached.end())
    error = kCaptureUnjoined;
  if (error == kOk) {
    *graph = next_handle_ += 16;
    p.graphs[*graph] = capture->graph;
  }
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

int Engine::capture_info(int pe, int thread, StreamHandle handle, int* status, std::uint64_t* id) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  *status = stream->capture == nullptr ? 0 : stream->capture->invalid ? 2 : 1;  // cudaStreamCaptureStatus
  *id = stream->capture == nullptr ? 0 : stream->capture->id;
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
  *exec = next_handle_ += 16;
  p.execs[*exec].graph = it->second;
  return kOk;
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
    placed.push_back(append(std::move(op), before));
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

int Engine::graph_size(int pe, std::uint64_t graph, std::uint64_t* n) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto it = p.graphs.find(graph);
  if (it == p.graphs.end()) return kBadValue;
  *n = it->second->nodes.size();
  return kOk;
}

}  // namespace echolo::runtime
