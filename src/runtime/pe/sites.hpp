// Where host code called us from: return addresses outside our own libraries and the system's, as module
// number and offset. The node turns them into source lines only when a finding needs one.
#pragma once

#include "runtime/protocol.hpp"

namespace echolo::runtime::pe {

// Fills up to kMaxFrames frames, innermost first; announces modules that the node has not heard of.
void gather_frames(wire::Frame* frames);
// The frame of one address; `exact`: an instruction's own address instead of a return address.
wire::Frame frame_of(std::uint64_t address, bool exact);

}  // namespace echolo::runtime::pe
