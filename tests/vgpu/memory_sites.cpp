// Stand-ins for vgpu/core's sites, which the tests of the memory room do not need; core's own take
// precedence.
#include "vgpu/exec.hpp"

namespace echolo::vgpu {

__attribute__((weak)) Dim3 thread_index(const Warp& warp, int lane) {
  return {warp.index_in_block * kWarpSize + static_cast<std::uint32_t>(lane), 0, 0};
}

__attribute__((weak)) Site make_site(const Warp& warp, int lane, const Inst& inst, std::string role) {
  Site site;
  site.role = std::move(role);
  site.pe = warp.block->grid->pe;
  site.block = warp.block->index;
  site.thread = thread_index(warp, lane);
  site.where = {"test.ptx", inst.source->ptx_line, 0, ""};
  return site;
}

__attribute__((weak)) Site make_host_site(int pe, std::string role) {
  Site site;
  site.role = std::move(role);
  site.pe = pe;
  site.on_device = false;
  return site;
}

}  // namespace echolo::vgpu
