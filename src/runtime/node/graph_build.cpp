// Graphs that are built, read and changed node by node (CUDA runtime API, "Graph Management").
#include <algorithm>
#include <set>

#include "runtime/node/engine_state.hpp"

namespace echolo::runtime {
namespace {

// cudaGraphExecUpdateResult
constexpr int kUpdateTopologyChanged = 2, kUpdateTypeChanged = 3;
// Copies of graphs in graphs could grow without end.
constexpr std::size_t kMostNodes = 1U << 18U;
constexpr int kDeepest = 32, kTooLarge = 2;

}  // namespace

int Engine::put_node(Graph& graph, Op op, std::vector<int> after, NodeType type) {
  const auto index = static_cast<int>(graph.nodes.size());
  Graph::Node node;
  node.op = std::move(op);
  node.after = std::move(after);
  node.id = next_handle_ += 16;
  node.type = type;
  graph.index[node.id] = index;
  graph.nodes.push_back(std::move(node));
  return index;
}

void Engine::capture_op(Stream& stream, Op op, NodeType type, std::uint64_t event) {
  Graph& graph = *stream.capture->graph;
  const int index = put_node(graph, std::move(op), stream.frontier, type);
  graph.nodes.back().captured = true;
  graph.nodes.back().event = event;
  stream.frontier = {index};
}

std::shared_ptr<Engine::Graph> Engine::find_graph(Pe& pe, std::uint64_t handle) {
  const auto it = pe.graphs.find(handle);
  if (it != pe.graphs.end()) return it->second;
  // A child graph lives in its node.
  std::vector<std::shared_ptr<Graph>> open;
  for (const auto& [own, graph] : pe.graphs) open.push_back(graph);
  while (!open.empty()) {
    std::shared_ptr<Graph> graph = open.back();
    open.pop_back();
    if (graph->handle == handle) return graph;
    for (const Graph::Node& node : graph->nodes) {
      if (node.child != nullptr && !node.destroyed) open.push_back(node.child);
    }
  }
  return nullptr;
}

std::shared_ptr<Engine::Graph> Engine::graph_of_node(Pe& pe, std::uint64_t node, int* index) {
  std::vector<std::shared_ptr<Graph>> open;
  for (const auto& [own, graph] : pe.graphs) open.push_back(graph);
  while (!open.empty()) {
    std::shared_ptr<Graph> graph = open.back();
    open.pop_back();
    const auto it = graph->index.find(node);
    if (it != graph->index.end()) {
      *index = it->second;
      return graph;
    }
    for (const Graph::Node& one : graph->nodes) {
      if (one.child != nullptr && !one.destroyed) open.push_back(one.child);
    }
  }
  return nullptr;
}

std::uint64_t Engine::create_graph(int pe) {
  auto graph = std::make_shared<Graph>();
  graph->handle = next_handle_ += 16;
  const std::uint64_t handle = graph->handle;
  pes_[static_cast<std::size_t>(pe)]->graphs[handle] = std::move(graph);
  return handle;
}

bool Engine::too_large(const Graph& graph, int depth, std::size_t* n) const {
  *n += graph.nodes.size();
  if (depth > kDeepest || *n > kMostNodes) return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Graph::Node& node) {
    return node.child != nullptr && too_large(*node.child, depth + 1, n);
  });
}

std::shared_ptr<Engine::Graph> Engine::copy_of(const Graph& graph) {
  auto copy = std::make_shared<Graph>();
  copy->handle = next_handle_ += 16;
  copy->nodes = graph.nodes;
  for (std::size_t i = 0; i < copy->nodes.size(); ++i) {
    Graph::Node& node = copy->nodes[i];
    node.origin = node.id;
    node.id = next_handle_ += 16;
    if (!node.destroyed) copy->index[node.id] = static_cast<int>(i);
    if (node.child != nullptr) node.child = copy_of(*node.child);
  }
  return copy;
}

int Engine::clone_graph(int pe, std::uint64_t handle, std::uint64_t* clone) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const std::shared_ptr<Graph> graph = find_graph(p, handle);
  if (graph == nullptr) return kBadValue;
  std::size_t n = 0;
  if (too_large(*graph, 0, &n)) return kTooLarge;
  std::shared_ptr<Graph> copy = copy_of(*graph);
  *clone = copy->handle;
  p.graphs[*clone] = std::move(copy);
  return kOk;
}

int Engine::fill_node(Pe& pe, Graph& graph, int index, NodeContent& content) {
  Graph::Node& node = graph.nodes[static_cast<std::size_t>(index)];
  switch (content.type) {
    case NodeType::kChild: {
      const std::shared_ptr<Graph> child = find_graph(pe, content.object);
      if (child == nullptr || child.get() == &graph) return kBadValue;
      std::size_t n = 0;
      if (too_large(*child, 1, &n)) return kTooLarge;
      node.child = copy_of(*child);
      break;
    }
    case NodeType::kWaitEvent:
    case NodeType::kRecordEvent:
      if (find_event(pe, content.object) == nullptr) return kBadHandle;
      node.event = content.object;
      break;
    default:
      break;
  }
  node.op = std::move(content.op);
  return kOk;
}

int Engine::add_node(int pe, std::uint64_t handle, const NodeIds& before, NodeContent content,
                     std::uint64_t* node) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const std::shared_ptr<Graph> graph = find_graph(p, handle);
  if (graph == nullptr) return kBadValue;
  if (graph->nodes.size() >= kMostNodes) return kTooLarge;
  std::vector<int> after;
  for (const std::uint64_t id : before) {
    const auto it = graph->index.find(id);
    if (it == graph->index.end() || std::find(after.begin(), after.end(), it->second) != after.end())
      return kBadValue;
    after.push_back(it->second);
  }
  const int index = put_node(*graph, Op{}, std::move(after), content.type);
  *node = graph->nodes.back().id;
  const int error = fill_node(p, *graph, index, content);
  if (error != kOk) {
    graph->index.erase(*node);
    graph->nodes.pop_back();
  }
  return error;
}

int Engine::set_node(int pe, std::uint64_t exec, std::uint64_t node, NodeContent content) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  int index = 0;
  std::shared_ptr<Graph> graph;
  if (exec == 0) {
    graph = graph_of_node(p, node, &index);
  } else if (const auto it = p.execs.find(exec); it != p.execs.end()) {
    graph = it->second.graph;
    const auto found = graph->index.find(node);
    if (found == graph->index.end()) return kBadValue;
    index = found->second;
  }
  if (graph == nullptr || graph->nodes[static_cast<std::size_t>(index)].type != content.type)
    return kBadValue;
  if (exec == 0 || content.type != NodeType::kChild) return fill_node(p, *graph, index, content);
  // The nodes of a child stand before it in the executable graph: each takes the content of its counterpart.
  const std::shared_ptr<Graph> child = find_graph(p, content.object);
  if (child == nullptr) return kBadValue;
  Graph flat;
  std::vector<int> ends;
  if (!flatten(*child, {}, flat, &ends)) return kBadValue;
  const auto n = static_cast<int>(flat.nodes.size());
  if (n > index) return kBadValue;
  const auto first = static_cast<std::size_t>(index - n);
  for (std::size_t i = 0; i < flat.nodes.size(); ++i) {
    if (graph->nodes[first + i].type != flat.nodes[i].type) return kBadValue;
  }
  for (std::size_t i = 0; i < flat.nodes.size(); ++i) {
    Graph::Node& to = graph->nodes[first + i];
    to.op = std::move(flat.nodes[i].op);
    to.event = flat.nodes[i].event;
  }
  return kOk;
}

int Engine::destroy_node(int pe, std::uint64_t id) {
  int index = 0;
  const std::shared_ptr<Graph> graph = graph_of_node(*pes_[static_cast<std::size_t>(pe)], id, &index);
  if (graph == nullptr) return kBadValue;
  graph->index.erase(id);
  Graph::Node& node = graph->nodes[static_cast<std::size_t>(index)];
  node.destroyed = true;
  node.after.clear();
  for (Graph::Node& other : graph->nodes) std::erase(other.after, index);
  return kOk;
}

int Engine::graph_nodes(int pe, std::uint64_t handle, bool roots, NodeIds* nodes) {
  const std::shared_ptr<Graph> graph = find_graph(*pes_[static_cast<std::size_t>(pe)], handle);
  if (graph == nullptr) return kBadValue;
  for (const Graph::Node& node : graph->nodes) {
    if (!node.destroyed && (!roots || node.after.empty())) nodes->push_back(node.id);
  }
  return kOk;
}

int Engine::graph_edges(int pe, std::uint64_t handle, NodePairs* edges) {
  const std::shared_ptr<Graph> graph = find_graph(*pes_[static_cast<std::size_t>(pe)], handle);
  if (graph == nullptr) return kBadValue;
  for (const Graph::Node& node : graph->nodes) {
    for (const int before : node.after)
      edges->emplace_back(graph->nodes[static_cast<std::size_t>(before)].id, node.id);
  }
  return kOk;
}

int Engine::node_info(int pe, std::uint64_t id, NodeInfo* info) {
  int index = 0;
  const std::shared_ptr<Graph> graph = graph_of_node(*pes_[static_cast<std::size_t>(pe)], id, &index);
  if (graph == nullptr) return kBadValue;
  const Graph::Node& node = graph->nodes[static_cast<std::size_t>(index)];
  info->graph = graph->handle;
  info->type = node.type;
  const Graph* child = node.child.get();
  info->object = child != nullptr ? child->handle : node.event;
  info->request_op = node.op.request_op;
  info->request = node.op.request;
  for (const int before : node.after)
    info->before.push_back(graph->nodes[static_cast<std::size_t>(before)].id);
  for (const Graph::Node& other : graph->nodes) {
    if (std::find(other.after.begin(), other.after.end(), index) != other.after.end())
      info->after.push_back(other.id);
  }
  return kOk;
}

int Engine::depend(int pe, std::uint64_t handle, bool remove, const NodePairs& edges) {
  const std::shared_ptr<Graph> graph = find_graph(*pes_[static_cast<std::size_t>(pe)], handle);
  if (graph == nullptr) return kBadValue;
  for (const auto& [from, to] : edges) {
    const auto a = graph->index.find(from), b = graph->index.find(to);
    if (a == graph->index.end() || b == graph->index.end() || from == to) return kBadValue;
    std::vector<int>& after = graph->nodes[static_cast<std::size_t>(b->second)].after;
    const auto there = std::find(after.begin(), after.end(), a->second);
    if ((there == after.end()) == remove) return kBadValue;  // twice the same, or not there
    if (remove) {
      after.erase(there);
    } else {
      after.push_back(a->second);
    }
  }
  return kOk;
}

int Engine::find_in_clone(int pe, std::uint64_t node, std::uint64_t clone, std::uint64_t* found) {
  const std::shared_ptr<Graph> graph = find_graph(*pes_[static_cast<std::size_t>(pe)], clone);
  if (graph == nullptr) return kBadValue;
  for (const Graph::Node& one : graph->nodes) {
    if (one.origin != node || one.destroyed) continue;
    *found = one.id;
    return kOk;
  }
  return kBadValue;
}

// Of the nodes that may come next, the one that was made first.
bool Engine::flatten(const Graph& graph, const std::vector<int>& before, Graph& out,
                     std::vector<int>* ends) const {
  const std::size_t n = graph.nodes.size();
  std::vector<std::size_t> unmet(n, 0);
  std::vector<std::vector<std::size_t>> then(n);
  std::set<std::size_t> ready;
  std::size_t left = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (graph.nodes[i].destroyed) continue;
    ++left;
    unmet[i] = graph.nodes[i].after.size();
    for (const int index : graph.nodes[i].after) then[static_cast<std::size_t>(index)].push_back(i);
    if (unmet[i] == 0) ready.insert(i);
  }
  std::vector<int> place(n, -1);
  while (!ready.empty()) {
    const std::size_t i = *ready.begin();
    ready.erase(ready.begin());
    --left;
    const Graph::Node& node = graph.nodes[i];
    std::vector<int> after;
    for (const int index : node.after) after.push_back(place[static_cast<std::size_t>(index)]);
    if (after.empty()) after = before;
    if (node.child != nullptr) {
      std::vector<int> inner;
      if (!flatten(*node.child, after, out, &inner)) return false;
      after.insert(after.end(), inner.begin(), inner.end());
    }
    place[i] = static_cast<int>(out.nodes.size());
    out.nodes.push_back(node);
    out.nodes.back().child = nullptr;
    out.nodes.back().after = std::move(after);
    out.index[node.id] = place[i];
    for (const std::size_t next : then[i]) {
      if (--unmet[next] == 0) ready.insert(next);
    }
    if (then[i].empty()) ends->push_back(place[i]);
  }
  return left == 0;
}

int Engine::update_exec(int pe, std::uint64_t exec, std::uint64_t handle, UpdateResult* result) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto it = p.execs.find(exec);
  const std::shared_ptr<Graph> graph = find_graph(p, handle);
  if (it == p.execs.end() || graph == nullptr) return kBadValue;
  Graph& own = *it->second.graph;
  Graph fresh;
  std::vector<int> ends;
  if (!flatten(*graph, {}, fresh, &ends)) return kBadValue;
  const std::size_t n = std::min(own.nodes.size(), fresh.nodes.size());
  for (std::size_t i = 0; i < n && result->result == 0; ++i) {
    if (fresh.nodes[i].type != own.nodes[i].type)
      result->result = kUpdateTypeChanged;
    else if (fresh.nodes[i].after != own.nodes[i].after)
      result->result = kUpdateTopologyChanged;
    if (result->result != 0) result->node = fresh.nodes[i].id;
  }
  if (result->result == 0 && own.nodes.size() != fresh.nodes.size()) result->result = kUpdateTopologyChanged;
  if (result->result != 0) return kGraphUpdateFailure;
  for (std::size_t i = 0; i < own.nodes.size(); ++i) {
    own.nodes[i].op = std::move(fresh.nodes[i].op);
    own.nodes[i].event = fresh.nodes[i].event;
  }
  return kOk;
}

// Only nodes that do something by themselves can be switched off.
int Engine::enable_node(int pe, std::uint64_t exec, std::uint64_t node, int what, bool* enabled) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto it = p.execs.find(exec);
  if (it == p.execs.end()) return kBadValue;
  const auto found = it->second.graph->index.find(node);
  if (found == it->second.graph->index.end()) return kBadValue;
  Graph::Node& own = it->second.graph->nodes[static_cast<std::size_t>(found->second)];
  if (own.type > NodeType::kFill) return kBadValue;
  if (what != 2) own.enabled = what == 1;
  *enabled = own.enabled;
  return kOk;
}

}  // namespace echolo::runtime
