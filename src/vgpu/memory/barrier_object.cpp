// mbarrier (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

Result<Plan> plan_barrier_object(const PlanContext& context) {
  return context.refuse("the virtual node does not execute this instruction");
}

}  // namespace echolo::vgpu
