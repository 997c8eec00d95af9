// The engine's own types, shared by engine.cpp and graphs.cpp only.
#pragma once

#include "runtime/node/engine.hpp"

namespace echolo::runtime {

struct Engine::Graph {
  struct Node {
    Op op;
    std::vector<int> after;    // nodes before it
    std::uint64_t id = 0;      // its handle; the same in executable graphs
    std::uint64_t origin = 0;  // of a clone: the node that it was made from
    NodeType type = NodeType::kEmpty;
    std::uint64_t event = 0;       // of kWaitEvent and kRecordEvent
    std::shared_ptr<Graph> child;  // of kChild
    bool captured = false, destroyed = false;
    bool enabled = true;
  };
  std::uint64_t handle = 0;
  std::vector<Node> nodes;
  std::map<std::uint64_t, int> index;  // by id
};

struct Engine::Capture {
  std::uint64_t id = 0;
  StreamHandle origin = 0;
  int thread = 0;
  int mode = 0;  // cudaStreamCaptureMode
  bool invalid = false;
  std::shared_ptr<Graph> graph;
};

struct Engine::Stream {
  std::uint64_t id = 0;
  bool non_blocking = false;
  int priority = 0;
  OpId last = 0;
  std::vector<OpId> also_after;  // events that the next operation waits for
  Capture* capture = nullptr;
  std::vector<int> frontier;  // the nodes that the next captured operation comes after
};

struct Engine::Event {
  bool timing = true, shareable = false;
  bool recorded = false;
  OpId last = 0;                        // the operation that records it
  std::shared_ptr<std::uint64_t> time;  // virtual ns, valid once `last` is done
  std::uint64_t capture = 0;            // not 0: recorded in this capture, after `frontier`
  std::vector<int> frontier;
};

struct Engine::Exec {
  std::shared_ptr<Graph> graph;       // its own: without children, every node behind those before it
  OpId last = 0;                      // the end of its last launch: a graph never runs beside itself
  std::vector<vgpu::AgentId> agents;  // of its nodes: a chain of nodes shares one
};

struct Engine::Pe {
  std::map<StreamHandle, Stream> streams;
  std::map<std::uint64_t, Event> events;
  std::map<std::uint64_t, std::pair<int, std::uint64_t>> opened_events;  // handle -> PE and its event
  std::map<std::uint64_t, std::shared_ptr<Graph>> graphs;
  std::map<std::uint64_t, Exec> execs;
  std::vector<std::unique_ptr<Capture>> captures;
  std::map<int, int> capture_modes;  // host thread -> mode of calls it makes itself
  std::vector<OpId> orphans;         // last operations of destroyed streams
};

}  // namespace echolo::runtime
