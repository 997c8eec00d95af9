// Teams, and the queries about them (NVSHMEM documentation, "Team Management").
#include "shmem/world.hpp"

#include <algorithm>
#include <numeric>

#include "shmem/call.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;

int Team::index_of(int pe) const {
  const auto found = std::find(pes.begin(), pes.end(), pe);
  return found == pes.end() ? -1 : static_cast<int>(found - pes.begin());
}

World::World(int n, bool reachable)
    : n_pes(n), peers_reachable(reachable), gone(static_cast<std::size_t>(n)) {
  Team all;
  all.pes.resize(static_cast<std::size_t>(n));
  std::iota(all.pes.begin(), all.pes.end(), 0);
  teams = {all, all, all};  // NVSHMEM_TEAM_WORLD, NVSHMEM_TEAM_SHARED, NVSHMEMX_TEAM_NODE: one node
  // NVSHMEMX_TEAM_SAME_MYPE_NODE has one PE on one node, a different one for each caller; only queries about
  // it are answered.
  teams.push_back({});
}

const Team* World::team(int handle) const {
  if (handle < 0 || handle >= static_cast<int>(teams.size())) return nullptr;
  const Team& team = teams[static_cast<std::size_t>(handle)];
  return team.live ? &team : nullptr;
}

namespace {
constexpr int kSamePeTeam = 3;
}  // namespace

CallOutcome do_my_pe(Call& call) {
  call.result = static_cast<std::uint64_t>(call.pe);
  return CallOutcome::kDone;
}

CallOutcome do_n_pes(Call& call) {
  call.result = static_cast<std::uint64_t>(call.world.n_pes);
  return CallOutcome::kDone;
}

// "-1 where the caller is no member or the team is NVSHMEM_TEAM_INVALID".
CallOutcome do_team_my_pe(Call& call) {
  const int handle = call.integer(0);
  const Team* team = call.world.team(handle);
  const int index = handle == kSamePeTeam ? 0 : (team != nullptr ? team->index_of(call.pe) : -1);
  call.result = static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
  return CallOutcome::kDone;
}

CallOutcome do_team_n_pes(Call& call) {
  const int handle = call.integer(0);
  const Team* team = call.world.team(handle);
  const bool member = team != nullptr && team->index_of(call.pe) >= 0;
  const int n = handle == kSamePeTeam ? 1 : (member ? static_cast<int>(team->pes.size()) : -1);
  call.result = static_cast<std::uint64_t>(static_cast<std::int64_t>(n));
  return CallOutcome::kDone;
}

CallOutcome do_team_translate(Call& call) {
  const Team* from = call.world.team(call.integer(0));
  const Team* to = call.world.team(call.integer(2));
  const int pe = call.integer(1);
  int index = -1;
  if (from != nullptr && to != nullptr && pe >= 0 && pe < static_cast<int>(from->pes.size())) {
    index = to->index_of(from->pes[static_cast<std::size_t>(pe)]);
  }
  call.result = static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
  return CallOutcome::kDone;
}

}  // namespace echolo::shmem
