#include "ptx/modifiers.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

namespace echolo::ptx {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kSpaceWords[] = {"const",  "global",       "local",
                                            "param",  "param::entry", "param::func",
                                            "shared", "shared::cta",  "shared::cluster"};
constexpr std::string_view kOrderWords[] = {"weak",    "volatile", "relaxed", "acquire",
                                            "release", "acq_rel",  "sc",      "mmio"};
constexpr std::string_view kScopeWords[] = {"cta", "cluster", "gpu", "sys"};
constexpr std::string_view kRoundWords[] = {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "rs"};
constexpr std::string_view kCompareWords[] = {"eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
                                              "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
constexpr std::string_view kBoolWords[] = {"and", "or", "xor"};
constexpr std::string_view kMulWords[] = {"lo", "hi", "wide"};
constexpr std::string_view kVectorWords[] = {"v2", "v4", "v8"};
constexpr std::string_view kRedopWords[] = {"sub:add", "sub:min", "sub:max", "sub:and",  "sub:or",
                                            "sub:xor", "sub:inc", "sub:dec", "sub:exch", "sub:cas"};
constexpr std::string_view kLayoutWords[] = {"row", "col"};
constexpr std::string_view kCacheWords[] = {"ca",
                                            "cg",
                                            "cs",
                                            "lu",
                                            "cv",
                                            "wb",
                                            "wt",
                                            "L1::evict_normal",
                                            "L1::evict_unchanged",
                                            "L1::evict_first",
                                            "L1::evict_last",
                                            "L1::no_allocate",
                                            "L2::evict_normal",
                                            "L2::evict_unchanged",
                                            "L2::evict_first",
                                            "L2::evict_last",
                                            "L2::cache_hint",
                                            "L2::64B",
                                            "L2::128B",
                                            "L2::256B"};
constexpr std::string_view kCompleteWords[] = {"mbarrier::complete_tx::bytes", "bulk_group"};
constexpr std::string_view kDimWords[] = {"1d",  "2d",   "3d",    "4d",   "5d",   "a1d",
                                          "a2d", "cube", "acube", "2dms", "a2dms"};
constexpr std::string_view kTensorModeWords[] = {
    "mode:tile",           "mode:im2col",        "mode:im2col_no_offs", "mode:im2col::w",
    "mode:im2col::w::128", "mode:tile::gather4", "mode:tile::scatter4"};
constexpr std::string_view kTensormapWords[] = {"mode:global_address", "mode:rank",
                                                "mode:box_dim",        "mode:global_dim",
                                                "mode:global_stride",  "mode:element_stride",
                                                "mode:elemtype",       "mode:interleave_layout",
                                                "mode:swizzle_mode",   "mode:swizzle_atomicity",
                                                "mode:fill_mode"};
constexpr std::string_view kQueryWords[] = {"mode:width",         "mode:height",
                                            "mode:depth",         "mode:channel_data_type",
                                            "mode:channel_order", "mode:normalized_coords",
                                            "mode:array_size",    "mode:num_mipmap_levels",
                                            "mode:num_samples",   "mode:filter_mode",
                                            "mode:addr_mode_0",   "mode:addr_mode_1",
                                            "mode:addr_mode_2",   "mode:memory_layout"};
constexpr std::string_view kProxyWords[] = {"mode:alias", "mode:async", "mode:async::generic",
                                            "mode:async.global", "mode:tensormap::generic"};
constexpr std::string_view kRestrictWords[] = {"sync_restrict::shared::cta",
                                               "sync_restrict::shared::cluster"};
constexpr std::string_view kQueryCancelWords[] = {"mode:is_canceled",        "mode:get_first_ctaid",
                                                  "mode:get_first_ctaid::x", "mode:get_first_ctaid::y",
                                                  "mode:get_first_ctaid::z", "v4"};

const std::unordered_map<std::string_view, Words>& groups() {
  static const std::unordered_map<std::string_view, Words> map = {
      {"space", kSpaceWords},
      {"order", kOrderWords},
      {"scope", kScopeWords},
      {"round", kRoundWords},
      {"compare", kCompareWords},
      {"bool", kBoolWords},
      {"mul", kMulWords},
      {"vector", kVectorWords},
      {"redop", kRedopWords},
      {"layout", kLayoutWords},
      {"cache", kCacheWords},
      {"complete", kCompleteWords},
      {"dim", kDimWords},
      {"tensor_mode", kTensorModeWords},
      {"tensormap", kTensormapWords},
      {"query", kQueryWords},
      {"proxy", kProxyWords},
      {"restrict", kRestrictWords},
      {"query_cancel", kQueryCancelWords},
  };
  return map;
}

// Enumerators in the order of the words above.
constexpr Space kSpaces[] = {Space::kConst,  Space::kGlobal, Space::kLocal,
                             Space::kParam,  Space::kParam,  Space::kParam,
                             Space::kShared, Space::kShared, Space::kSharedCluster};

template <typename First>
void number(std::unordered_map<std::string_view, Action>& map, Field field, Words words, First first) {
  auto value = static_cast<std::uint8_t>(first);
  for (const std::string_view word : words) map.try_emplace(word, Action{field, value++});
}

const std::unordered_map<std::string_view, Action>& default_actions() {
  static const std::unordered_map<std::string_view, Action> map = [] {
    std::unordered_map<std::string_view, Action> built;
    for (std::size_t i = 0; i < std::size(kSpaceWords); ++i) {
      built[kSpaceWords[i]] = {Field::kSpace, static_cast<std::uint8_t>(kSpaces[i])};
    }
    number(built, Field::kOrder, kOrderWords, Order::kWeak);
    number(built, Field::kScope, kScopeWords, Scope::kCta);
    number(built, Field::kRounding, kRoundWords, Rounding::kRn);
    built["gl"] = {Field::kScope, static_cast<std::uint8_t>(Scope::kGpu)};  // membar.gl
    built["v2"] = {Field::kVector, 2};
    built["v4"] = {Field::kVector, 4};
    built["v8"] = {Field::kVector, 8};
    built["x1"] = {Field::kCount, 1};
    built["x2"] = {Field::kCount, 2};
    built["x4"] = {Field::kCount, 4};
    const std::pair<std::string_view, Field> flags[] = {
        {"row", Field::kRow},
        {"col", Field::kColumn},
        {"trans", Field::kTrans},
        {"sp", Field::kSparse},
        {"sp::ordered_metadata", Field::kSparse},
        {"ftz", Field::kFtz},
        {"sat", Field::kSat},
        {"satfinite", Field::kSat},
        {"relu", Field::kRelu},
        {"approx", Field::kApprox},
        {"full", Field::kFull},
        {"noftz", Field::kNoftz},
        {"to", Field::kTo},
        {"uni", Field::kUniform},
        {"sync", Field::kSync},
        {"aligned", Field::kAligned},
        {"async", Field::kAsync},
        {"bulk", Field::kBulk},
        {"tensor", Field::kTensor},
        {"multicast::cluster", Field::kMulticast},
        {"noinc", Field::kNoinc},
        {"cp_mask", Field::kBytemask},
        {"nc", Field::kNonCoherent},
        {"NaN", Field::kNanPropagate},
        {"xorsign", Field::kXorsign},
        {"proxy", Field::kProxy},
        {"cc", Field::kCarryOut},
    };
    for (const auto& [word, field] : flags) built[word] = {field, 1};
    return built;
  }();
  return map;
}

}  // namespace

Words group_words(std::string_view group) {
  const auto found = groups().find(group);
  return found == groups().end() ? Words{} : found->second;
}

std::optional<Action> group_action(std::string_view group, std::size_t index) {
  // The enumerators stand in the order of the words, after a kNone.
  const auto value = static_cast<std::uint8_t>(index + 1);
  if (group == "compare") return Action{Field::kCompare, value};
  if (group == "bool") return Action{Field::kBoolOp, value};
  if (group == "mul") return Action{Field::kMulMode, value};
  return std::nullopt;
}

Action default_action(std::string_view word) {
  const auto found = default_actions().find(word);
  return found == default_actions().end() ? Action{} : found->second;
}

Action sub_op_action(std::string_view word) {
  static const std::unordered_map<std::string_view, SubOp> map = {
      {"add", SubOp::kAdd},
      {"min", SubOp::kMin},
      {"max", SubOp::kMax},
      {"and", SubOp::kAnd},
      {"or", SubOp::kOr},
      {"xor", SubOp::kXor},
      {"inc", SubOp::kInc},
      {"dec", SubOp::kDec},
      {"exch", SubOp::kExch},
      {"cas", SubOp::kCas},
      {"popc", SubOp::kPopc},
      {"all", SubOp::kAll},
      {"any", SubOp::kAny},
      {"uni", SubOp::kUni},
      {"ballot", SubOp::kBallot},
      {"up", SubOp::kUp},
      {"down", SubOp::kDown},
      {"bfly", SubOp::kBfly},
      {"idx", SubOp::kIdx},
      {"sync", SubOp::kSync},
      {"arrive", SubOp::kArrive},
      {"red", SubOp::kRed},
      {"wait", SubOp::kWait},
      {"init", SubOp::kInit},
      {"inval", SubOp::kInval},
      {"try_wait", SubOp::kTryWait},
      {"test_wait", SubOp::kTestWait},
      {"expect_tx", SubOp::kExpectTx},
      {"complete_tx", SubOp::kCompleteTx},
      {"commit_group", SubOp::kCommitGroup},
      {"wait_group", SubOp::kWaitGroup},
      {"wait_all", SubOp::kWaitAll},
      {"wrap", SubOp::kWrap},
      {"clamp", SubOp::kClamp},
      {"l", SubOp::kShiftL},
      {"r", SubOp::kShiftR},
      {"zero", SubOp::kZero},
      {"mbarrier", SubOp::kMbarrierArrive},
      {"bulk", SubOp::kBulk},
      {"tensor", SubOp::kTensor},
      {"fence", SubOp::kFence},
      {"arrive_drop", SubOp::kArriveDrop},
      {"pending_count", SubOp::kPendingCount},
  };
  return {Field::kSubOp, static_cast<std::uint8_t>(map.at(word))};
}

void apply(Action action, std::string_view word, Instruction& to) {
  switch (action.field) {
    case Field::kNothing:
      break;
    case Field::kType: {
      const auto type = static_cast<Type>(action.value);
      for (Type& slot : to.types) {
        if (slot == Type::kNone) {
          slot = type;
          break;
        }
      }
      if (to.type == Type::kNone) {
        to.type = type;
      } else if (to.type2 == Type::kNone) {
        to.type2 = type;
      }
      break;
    }
    case Field::kSpace:
      (to.space == Space::kGeneric ? to.space : to.space2) = static_cast<Space>(action.value);
      break;
    case Field::kOrder:
      to.order = static_cast<Order>(action.value);
      to.order_given = true;
      break;
    case Field::kScope:
      to.scope = static_cast<Scope>(action.value);
      break;
    case Field::kRounding:
      to.rounding = static_cast<Rounding>(action.value);
      break;
    case Field::kCompare:
      to.compare = static_cast<Compare>(action.value);
      break;
    case Field::kBoolOp:
      to.bool_op = static_cast<BoolOp>(action.value);
      break;
    case Field::kMulMode:
      to.mul_mode = static_cast<MulMode>(action.value);
      break;
    case Field::kSubOp:
      (to.sub_op == SubOp::kNone ? to.sub_op : to.sub_op2) = static_cast<SubOp>(action.value);
      if (to.sub_op == SubOp::kBulk || to.sub_op == SubOp::kTensor) to.bulk = true;
      if (to.sub_op == SubOp::kTensor) to.tensor = true;
      break;
    case Field::kMode:
      to.mode = word;
      break;
    case Field::kVector:
      to.vector = action.value;
      break;
    case Field::kCount:
      to.shape.count = action.value;
      break;
    case Field::kRow:
    case Field::kColumn: {
      // The first of the two layouts is A's, the second B's.
      const bool first =
          std::ranges::none_of(to.modifiers, [](auto given) { return given == "row" || given == "col"; });
      if (first) {
        to.shape.a_row = action.field == Field::kRow;
      } else {
        to.shape.b_col = action.field == Field::kColumn;
      }
      break;
    }
    case Field::kTrans:
      to.shape.trans = true;
      break;
    case Field::kSparse:
      to.shape.sparse = true;
      break;
    case Field::kFtz:
      to.ftz = true;
      break;
    case Field::kSat:
      to.sat = true;
      break;
    case Field::kRelu:
      to.relu = true;
      break;
    case Field::kApprox:
      to.approx = true;
      break;
    case Field::kFull:
      to.full = true;
      break;
    case Field::kNoftz:
      to.noftz = true;
      break;
    case Field::kTo:
      to.to = true;
      break;
    case Field::kUniform:
      to.uniform = true;
      break;
    case Field::kSync:
      to.sync = true;
      break;
    case Field::kAligned:
      to.aligned = true;
      break;
    case Field::kAsync:
      to.async = true;
      break;
    case Field::kBulk:
      to.bulk = true;
      break;
    case Field::kTensor:
      to.tensor = true;
      break;
    case Field::kMulticast:
      to.multicast = true;
      break;
    case Field::kNoinc:
      to.noinc = true;
      break;
    case Field::kBytemask:
      to.bytemask = true;
      break;
    case Field::kNonCoherent:
      to.non_coherent = true;
      break;
    case Field::kNanPropagate:
      to.nan_propagate = true;
      break;
    case Field::kXorsign:
      to.xorsign = true;
      break;
    case Field::kProxy:
      to.proxy = true;
      break;
    case Field::kCarryOut:
      to.carry_out = true;
      break;
  }
}

bool apply_shape(std::string_view word, MatrixShape& shape) {
  const char* at = word.data();
  const char* const end = at + word.size();
  for (const auto& [letter, dimension] :
       {std::pair{'m', &shape.m}, std::pair{'n', &shape.n}, std::pair{'k', &shape.k}}) {
    if (at == end) return letter == 'k';
    if (*at != letter) return false;
    const auto [next, error] = std::from_chars(at + 1, end, *dimension);
    if (error != std::errc() || next == at + 1) return false;
    at = next;
  }
  return at == end;
}

}  // namespace echolo::ptx
