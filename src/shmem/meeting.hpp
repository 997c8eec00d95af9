// How the members of a team meet. Internal to shmem/.
#pragma once

#include <functional>

#include "shmem/call.hpp"

namespace echolo::shmem {

using Finish = std::function<bool(Call&, const Team&, Collective&)>;

// Joins (or goes on waiting in) the collective of team `handle` that this call belongs to. `finish` runs
// once, when all have arrived, on behalf of the last; false: it has logged a fault.
vgpu::CallOutcome take_part(Call& call, int handle, const Finish& finish);

}  // namespace echolo::shmem
