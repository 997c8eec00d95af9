// Private to vgpu/memory.
#pragma once

#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

Result<Plan> plan_texture(const PlanContext& context);  // tex, unfiltered

}  // namespace echolo::vgpu
