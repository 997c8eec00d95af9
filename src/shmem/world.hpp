// Teams and the collectives in progress. Internal to shmem/.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "shmem/operation.hpp"
#include "vgpu/finding.hpp"
#include "vgpu/order/order.hpp"

namespace echolo::shmem {

struct Team {
  std::vector<int> pes;  // world numbers, in team order
  bool live = true;
  int index_of(int pe) const;  // -1: not a member
};

// What one PE brings to a collective.
struct Arrival {
  int pe = -1;  // world number
  const Operation* op = nullptr;
  std::vector<std::uint64_t> arguments;
  vgpu::Site site;
  vgpu::AgentId agent;       // whoever called
  vgpu::Clock before;        // what it did before
  std::uint32_t work = ~0U;  // what the time model knows it by
};

// One collective of one team, from the first arrival until every member has taken its result.
struct Collective {
  std::uint64_t id = 0;
  Team members;                   // as they were when it began
  std::vector<Arrival> arrivals;  // by team index; pe == -1: has not arrived
  int n_arrived = 0;
  bool done = false;
  std::vector<std::uint64_t> results;  // by team index, valid when done
  vgpu::Clock joint;                   // what happened before every member goes on; valid when done
  int n_taken = 0;
};

struct World {
  explicit World(int n_pes, bool reachable);
  int n_pes;
  bool peers_reachable;
  std::vector<Team> teams;  // index is the handle: 0 world, 1 shared, 2 node, 3 same PE number of each node
  std::map<std::uint64_t, Collective> collectives;  // by id
  std::uint64_t next_id = 1;
  std::map<int, std::deque<std::uint64_t>> open;  // team -> ids in order, oldest first
  std::vector<std::string> gone;                  // by PE: why its process is no longer there; empty: it is

  const Team* team(int handle) const;  // nullptr: no such team
};

}  // namespace echolo::shmem
