// Private to vgpu/memory: matrix instructions that reach memory themselves.
#pragma once

#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

Result<Plan> plan_wmma(const PlanContext& context);   // wmma.load, wmma.store
Result<Plan> plan_wgmma(const PlanContext& context);  // wgmma.fence, .commit_group, .wait_group, .mma_async

}  // namespace echolo::vgpu
