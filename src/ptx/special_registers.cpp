#include "ptx/special_registers.hpp"

#include <charconv>
#include <unordered_map>

namespace echolo::ptx {
namespace {

using enum SpecialReg;

const std::unordered_map<std::string_view, SpecialReg>& scalars() {
  static const std::unordered_map<std::string_view, SpecialReg> map = {
      {"%laneid", kLaneid},
      {"%warpid", kWarpid},
      {"%nwarpid", kNwarpid},
      {"%smid", kSmid},
      {"%nsmid", kNsmid},
      {"%gridid", kGridid},
      {"%is_explicit_cluster", kIsExplicitCluster},
      {"%cluster_ctarank", kClusterCtarank},
      {"%cluster_nctarank", kClusterNctarank},
      {"%lanemask_eq", kLanemaskEq},
      {"%lanemask_le", kLanemaskLe},
      {"%lanemask_lt", kLanemaskLt},
      {"%lanemask_ge", kLanemaskGe},
      {"%lanemask_gt", kLanemaskGt},
      {"%clock", kClock},
      {"%clock_hi", kClockHi},
      {"%clock64", kClock64},
      {"%globaltimer", kGlobaltimer},
      {"%globaltimer_lo", kGlobaltimerLo},
      {"%globaltimer_hi", kGlobaltimerHi},
      {"%total_smem_size", kTotalSmemSize},
      {"%aggr_smem_size", kAggrSmemSize},
      {"%dynamic_smem_size", kDynamicSmemSize},
      {"%reserved_smem_offset_begin", kReservedSmemBegin},
      {"%reserved_smem_offset_end", kReservedSmemEnd},
      {"%reserved_smem_offset_cap", kReservedSmemCap},
      {"%current_graph_exec", kCurrentGraphExec},
  };
  return map;
}

// The x component; y and z follow it.
const std::unordered_map<std::string_view, SpecialReg>& vectors() {
  static const std::unordered_map<std::string_view, SpecialReg> map = {
      {"%tid", kTidX},
      {"%ntid", kNtidX},
      {"%ctaid", kCtaidX},
      {"%nctaid", kNctaidX},
      {"%clusterid", kClusteridX},
      {"%nclusterid", kNclusteridX},
      {"%cluster_ctaid", kClusterCtaidX},
      {"%cluster_nctaid", kClusterNctaidX},
  };
  return map;
}

std::optional<int> number_after(std::string_view name, std::string_view prefix, int most) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<SpecialRegister> find_special_register(std::string_view name, std::string_view component) {
  if (!component.empty()) {
    const auto vector = vectors().find(name);
    const std::size_t at =
        component.size() == 1 ? std::string_view("xyz").find(component[0]) : std::string_view::npos;
    if (vector == vectors().end() || at == std::string_view::npos) return std::nullopt;
    return SpecialRegister{static_cast<SpecialReg>(static_cast<std::size_t>(vector->second) + at), 0};
  }
  const auto scalar = scalars().find(name);
  if (scalar != scalars().end()) return SpecialRegister{scalar->second, 0};
  if (const auto number = number_after(name, "%envreg", 31)) return SpecialRegister{kEnvreg, *number};
  if (const auto number = number_after(name, "%reserved_smem_offset_", 1)) {
    return SpecialRegister{kReservedSmemOffset0, *number};
  }
  if (name.ends_with("_64")) {
    const auto number = number_after(name.substr(0, name.size() - 3), "%pm", 7);
    return number ? std::optional(SpecialRegister{kPm, *number + 64}) : std::nullopt;
  }
  if (const auto number = number_after(name, "%pm", 7)) return SpecialRegister{kPm, *number};
  return std::nullopt;
}

}  // namespace echolo::ptx
