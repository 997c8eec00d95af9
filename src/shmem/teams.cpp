// Making and ending teams (NVSHMEM documentation, "Team Management"; OpenSHMEM 1.5, "Team Management
// Routines"). Splitting is collective over the parent; who is in no new team gets NVSHMEM_TEAM_INVALID.
#include <algorithm>

#include "shmem/meeting.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;

namespace {

constexpr std::uint32_t kInvalidTeam = 0xffffffffU;          // NVSHMEM_TEAM_INVALID
constexpr std::uint64_t kRefused = std::uint64_t{1} << 63U;  // the arguments make no team, for everybody

std::uint32_t add_team(World& world, Team team) {
  world.teams.push_back(std::move(team));
  return static_cast<std::uint32_t>(world.teams.size() - 1);
}

}  // namespace

CallOutcome do_team_split(Call& call) {
  return take_part(call, call.integer(0), [](Call& last, const Team& parent, Collective& c) {
    const int start = last.integer(1), stride = last.integer(2), size = last.integer(3);
    const auto n = static_cast<std::int64_t>(parent.pes.size());
    const std::int64_t end = start + std::int64_t{size - 1} * stride;
    if (size < 1 || size > n || start < 0 || start >= n || end < 0 || end >= n || (stride == 0 && size > 1)) {
      std::fill(c.results.begin(), c.results.end(), kRefused);
      return true;
    }
    Team made;
    for (int i = 0; i < size; ++i) {
      made.pes.push_back(
          parent.pes[static_cast<std::size_t>(std::int64_t{start} + std::int64_t{i} * stride)]);
    }
    const std::uint32_t handle = add_team(last.world, made);
    for (std::size_t i = 0; i < c.results.size(); ++i)
      c.results[i] = made.index_of(c.arrivals[i].pe) >= 0 ? handle : kInvalidTeam;
    return true;
  });
}

// PE i of the parent lies at column i % xrange of row i / xrange. Its first team is its row, its second one
// its column.
CallOutcome do_team_split_2d(Call& call) {
  return take_part(call, call.integer(0), [](Call& last, const Team& parent, Collective& c) {
    if (last.integer(1) < 1) {
      std::fill(c.results.begin(), c.results.end(), kRefused);
      return true;
    }
    const std::size_t n = parent.pes.size();
    const std::size_t columns = std::min(n, static_cast<std::size_t>(last.integer(1)));
    std::vector<Team> row_teams((n + columns - 1) / columns), column_teams(columns);
    for (std::size_t i = 0; i < n; ++i) {
      row_teams[i / columns].pes.push_back(parent.pes[i]);
      column_teams[i % columns].pes.push_back(parent.pes[i]);
    }
    std::vector<std::uint64_t> rows, column_handles;
    for (Team& team : row_teams) rows.push_back(add_team(last.world, std::move(team)));
    for (Team& team : column_teams) column_handles.push_back(add_team(last.world, std::move(team)));
    for (std::size_t i = 0; i < n; ++i)
      c.results[i] = rows[i / columns] | (column_handles[i % columns] << 32U);
    return true;
  });
}

CallOutcome do_team_destroy(Call& call) {
  const int handle = call.integer(0);
  if (handle < 4) return CallOutcome::kDone;  // predefined teams can't be destroyed; NVSHMEM ignores it
  return take_part(call, handle, [handle](Call& last, const Team&, Collective&) {
    last.world.teams[static_cast<std::size_t>(handle)].live = false;
    return true;
  });
}

}  // namespace echolo::shmem
