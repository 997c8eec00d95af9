#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
bool Machine::State::rendezvous(CoreWarp&) { return false; }
void Machine::State::report_divergence(CoreWarp&) {}
void Machine::State::report_skipped_barrier(CoreWarp&, const Group&, const Group&, std::uint32_t) {}
void Machine::State::explain_stuck(const std::vector<HostWait>&, bool) {}
}  // namespace echolo::vgpu
