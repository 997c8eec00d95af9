// vadd vsub vabsdiff vmin vmax vshl vshr vmad vset and the SIMD ones on two halves and four bytes (PTX
// ISA 9.7.18). Hopper has few of them in hardware; they are done lane by lane here.
#include "vgpu/alu/video.hpp"

#include <string>

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/operands.hpp"

namespace echolo::vgpu::alu {
namespace {

using ptx::Compare;
using ptx::Opcode;
using ptx::Type;

__extension__ using Int128 = __int128;

// Sign- or zero-extends the low bits.
std::int64_t extended(std::uint32_t value, unsigned bits, bool is_signed) {
  const std::uint64_t kept = bits == 32 ? value : value & ((1U << bits) - 1);
  if (!is_signed || (kept >> (bits - 1) & 1U) == 0) return static_cast<std::int64_t>(kept);
  return static_cast<std::int64_t>(kept) - (std::int64_t{1} << bits);
}

std::int64_t part(std::uint32_t value, std::uint8_t selector, bool is_signed) {
  if (selector == VideoCode::kWhole) return extended(value, 32, is_signed);
  if (selector >= 4) return extended(value >> (16U * (selector - 4U)), 16, is_signed);
  return extended(value >> (8U * selector), 8, is_signed);
}

std::int64_t clamped(std::int64_t value, unsigned bits, bool is_signed) {
  const std::int64_t most = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const std::int64_t least = is_signed ? -most - 1 : 0;
  return value < least ? least : (value > most ? most : value);
}

bool holds(Compare compare, std::int64_t a, std::int64_t b) {
  switch (compare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

std::int64_t compute(const VideoCode& code, std::int64_t a, std::int64_t b) {
  switch (code.op) {
    case VideoOp::kAdd:
      return a + b;
    case VideoOp::kSub:
      return a - b;
    case VideoOp::kAbsDiff:
      return a > b ? a - b : b - a;
    case VideoOp::kMin:
      return a < b ? a : b;
    case VideoOp::kMax:
      return a > b ? a : b;
    case VideoOp::kAverage:
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case VideoOp::kSet:
      return holds(code.compare, a, b) ? 1 : 0;
    default: {  // shifts
      std::int64_t by = b & 0x1f;
      if (code.clamp) by = b > 32 ? 32 : b;
      return code.op == VideoOp::kShl ? a << by : a >> by;
    }
  }
}

std::uint32_t multiply_add(const VideoCode& code, std::int64_t a, std::int64_t b, std::uint32_t c) {
  const bool final_signed = code.a_signed || code.b_signed || code.negate_product || code.negate_c;
  Int128 sum = Int128{a} * b;
  std::int64_t addend = extended(c, 32, final_signed);
  if (code.negate_product) sum = -sum;
  if (code.negate_c) addend = -addend;
  sum += addend + (code.plus_one ? 1 : 0);
  sum >>= code.shift;
  if (code.saturate) {
    const Int128 most = final_signed ? 0x7fffffff : 0xffffffffLL,
                 least = final_signed ? -most - 1 : Int128{0};
    sum = sum < least ? least : (sum > most ? most : sum);
  }
  return static_cast<std::uint32_t>(sum);
}

std::uint32_t scalar(const VideoCode& code, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::int64_t x = part(a, code.a[0], code.a_signed), y = part(b, code.b[0], code.b_signed);
  if (code.op == VideoOp::kMad) return multiply_add(code, x, y, c);
  std::int64_t value = compute(code, x, y);
  const unsigned bits = code.d == VideoCode::kWhole ? 32 : (code.d >= 4 ? 16 : 8);
  if (code.saturate) value = clamped(value, bits, code.d_signed);
  const auto word = static_cast<std::uint32_t>(value);
  if (code.merge) {
    const unsigned at = (code.d >= 4 ? 16U * (code.d - 4U) : 8U * code.d) & 31U;
    const std::uint32_t mask = (bits == 8 ? 0xffU : 0xffffU) << at;
    return (c & ~mask) | (word << at & mask);
  }
  const std::int64_t first = extended(word, 32, code.d_signed), second = extended(c, 32, code.d_signed);
  switch (code.second) {
    case 1:
      return word + c;
    case 2:
      return first < second ? word : c;
    case 3:
      return first > second ? word : c;
    default:
      return word;
  }
}

std::uint32_t several(const VideoCode& code, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const unsigned bits = 32U / code.lanes;
  const auto element = [&](std::uint8_t index, bool is_signed) {
    const std::uint32_t word = index < code.lanes ? a : b;
    return extended(word >> (bits * (index % code.lanes)), bits, is_signed);
  };
  std::uint32_t result = code.second == 1 ? 0 : c;
  for (unsigned lane = 0; lane < code.lanes; ++lane) {
    if ((code.d >> lane & 1U) == 0) continue;
    std::int64_t value =
        compute(code, element(code.a[lane], code.a_signed), element(code.b[lane], code.b_signed));
    if (code.saturate) value = clamped(value, bits, code.d_signed);
    if (code.second == 1) {
      result += static_cast<std::uint32_t>(value);
    } else {
      const std::uint32_t mask = (bits == 16 ? 0xffffU : 0xffU) << (bits * lane);
      result = (result & ~mask) | (static_cast<std::uint32_t>(value) << (bits * lane) & mask);
    }
  }
  return code.second == 1 ? result + c : result;
}

void run_video(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const VideoCode code = VideoCode::unpack(inst.aux);
  auto* d = lanes.write<std::uint32_t>(inst.operands[0]);
  const auto* a = lanes.read<std::uint32_t>(inst.operands[1]);
  const auto* b = lanes.read<std::uint32_t>(inst.operands[2]);
  const auto* c = inst.n_operands > 3 ? lanes.read<std::uint32_t>(inst.operands[3]) : nullptr;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((mask >> static_cast<unsigned>(i) & 1U) == 0) continue;
    const std::uint32_t addend = c == nullptr ? 0 : c[i];
    d[i] = code.lanes == 1 ? scalar(code, a[i], b[i], addend) : several(code, a[i], b[i], addend);
  }
}

// ---- Planning
// -------------------------------------------------------------------------------------------------

struct Family {
  VideoOp op;
  std::uint8_t lanes;
};
Family family_of(Opcode op) {
  switch (op) {
    case Opcode::kVadd:
      return {VideoOp::kAdd, 1};
    case Opcode::kVsub:
      return {VideoOp::kSub, 1};
    case Opcode::kVabsdiff:
      return {VideoOp::kAbsDiff, 1};
    case Opcode::kVmin:
      return {VideoOp::kMin, 1};
    case Opcode::kVmax:
      return {VideoOp::kMax, 1};
    case Opcode::kVshl:
      return {VideoOp::kShl, 1};
    case Opcode::kVshr:
      return {VideoOp::kShr, 1};
    case Opcode::kVmad:
      return {VideoOp::kMad, 1};
    case Opcode::kVset:
      return {VideoOp::kSet, 1};
    case Opcode::kVadd2:
      return {VideoOp::kAdd, 2};
    case Opcode::kVsub2:
      return {VideoOp::kSub, 2};
    case Opcode::kVavrg2:
      return {VideoOp::kAverage, 2};
    case Opcode::kVabsdiff2:
      return {VideoOp::kAbsDiff, 2};
    case Opcode::kVmin2:
      return {VideoOp::kMin, 2};
    case Opcode::kVmax2:
      return {VideoOp::kMax, 2};
    case Opcode::kVset2:
      return {VideoOp::kSet, 2};
    case Opcode::kVadd4:
      return {VideoOp::kAdd, 4};
    case Opcode::kVsub4:
      return {VideoOp::kSub, 4};
    case Opcode::kVavrg4:
      return {VideoOp::kAverage, 4};
    case Opcode::kVabsdiff4:
      return {VideoOp::kAbsDiff, 4};
    case Opcode::kVmin4:
      return {VideoOp::kMin, 4};
    case Opcode::kVmax4:
      return {VideoOp::kMax, 4};
    case Opcode::kVset4:
      return {VideoOp::kSet, 4};
    default:
      return {VideoOp::kAdd, 0};
  }
}

// The parser keeps a register's selector in its value.
std::string selector_of(const ptx::Operand& operand) {
  std::string text;
  if (operand.kind != ptx::OperandKind::kRegister) return text;
  for (auto rest = static_cast<std::uint64_t>(operand.value); rest != 0; rest >>= 8U)
    text += static_cast<char>(rest & 0xffU);
  return text;
}

Error bad_selector(std::string_view selector) {
  return usage_error("'." + std::string(selector) + "' cannot stand behind this operand");
}

// .b0 .. .b3, .h0, .h1 of an instruction with one lane.
Result<std::uint8_t> scalar_selector(const std::string& selector) {
  if (selector.empty()) return VideoCode::kWhole;
  const bool byte = selector[0] == 'b', half = selector[0] == 'h';
  const char digit = selector.size() == 2 ? selector[1] : '9';
  if (byte && digit >= '0' && digit <= '3') return static_cast<std::uint8_t>(digit - '0');
  if (half && digit >= '0' && digit <= '1') return static_cast<std::uint8_t>(digit - '0' + 4);
  return bad_selector(selector);
}

// .hxy and .bwzyx: which element each lane takes, the highest lane first.
Status lane_selector(std::string_view selector, std::uint8_t lanes, std::uint8_t first, std::uint8_t* out) {
  if (selector.empty()) {
    for (std::uint8_t lane = 0; lane < lanes; ++lane) out[lane] = static_cast<std::uint8_t>(first + lane);
    return {};
  }
  if (selector.size() != lanes + 1U || selector[0] != (lanes == 2 ? 'h' : 'b')) return bad_selector(selector);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const char digit = selector[lanes - lane];
    if (digit < '0' || digit >= '0' + 2 * lanes) return bad_selector(selector);
    out[lane] = static_cast<std::uint8_t>(digit - '0');
  }
  return {};
}

Result<std::uint8_t> lane_mask(std::string_view selector, std::uint8_t lanes) {
  if (selector.empty()) return static_cast<std::uint8_t>((1U << lanes) - 1U);
  std::uint8_t mask = 0;
  if (selector[0] != (lanes == 2 ? 'h' : 'b')) return bad_selector(selector);
  for (const char digit : selector.substr(1)) {
    if (digit < '0' || digit >= '0' + lanes) return bad_selector(selector);
    mask = static_cast<std::uint8_t>(mask | 1U << static_cast<unsigned>(digit - '0'));
  }
  return mask;
}

Status read_selectors(const ptx::Instruction& inst, VideoCode* code) {
  const auto& operands = inst.operands;
  if (code->lanes > 1) {
    const Result<std::uint8_t> mask = lane_mask(selector_of(operands[0]), code->lanes);
    if (!mask.ok()) return mask.error();
    code->d = *mask;
    Status status = lane_selector(selector_of(operands[1]), code->lanes, 0, code->a);
    return status.ok() ? lane_selector(selector_of(operands[2]), code->lanes, code->lanes, code->b) : status;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<std::uint8_t> selector = scalar_selector(selector_of(operands[i]));
    if (!selector.ok()) return selector.error();
    (i == 0 ? code->d : (i == 1 ? code->a[0] : code->b[0])) = *selector;
  }
  code->merge = code->d != VideoCode::kWhole;
  return {};
}

}  // namespace

void VideoCode::pack(std::uint64_t* aux) const {
  const auto flag = [](bool set, unsigned at) { return std::uint64_t{set} << at; };
  aux[0] = static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(compare) << 8U |
           std::uint64_t{lanes} << 16U | std::uint64_t{second} << 20U | std::uint64_t{shift} << 24U |
           flag(d_signed, 32) | flag(a_signed, 33) | flag(b_signed, 34) | flag(saturate, 35) |
           flag(clamp, 36) | flag(merge, 37) | flag(plus_one, 38) | flag(negate_product, 39) |
           flag(negate_c, 40);
  aux[1] = std::uint64_t{d} << 32U;
  for (unsigned i = 0; i < 4; ++i)
    aux[1] |= std::uint64_t{a[i]} << (4 * i) | std::uint64_t{b[i]} << (16 + 4 * i);
}

VideoCode VideoCode::unpack(const std::uint64_t* aux) {
  const auto flag = [&](unsigned at) { return (aux[0] >> at & 1U) != 0; };
  VideoCode code;
  code.op = static_cast<VideoOp>(aux[0] & 0xffU);
  code.compare = static_cast<Compare>(aux[0] >> 8U & 0xffU);
  code.lanes = static_cast<std::uint8_t>(aux[0] >> 16U & 0xfU);
  code.second = static_cast<std::uint8_t>(aux[0] >> 20U & 0xfU);
  code.shift = static_cast<std::uint8_t>(aux[0] >> 24U);
  code.d_signed = flag(32);
  code.a_signed = flag(33);
  code.b_signed = flag(34);
  code.saturate = flag(35);
  code.clamp = flag(36);
  code.merge = flag(37);
  code.plus_one = flag(38);
  code.negate_product = flag(39);
  code.negate_c = flag(40);
  code.d = static_cast<std::uint8_t>(aux[1] >> 32U);
  for (unsigned i = 0; i < 4; ++i) {
    code.a[i] = static_cast<std::uint8_t>(aux[1] >> (4 * i) & 0xfU);
    code.b[i] = static_cast<std::uint8_t>(aux[1] >> (16 + 4 * i) & 0xfU);
  }
  return code;
}

bool is_video(Opcode op) { return family_of(op).lanes != 0; }

Status plan_video(PlanBuilder& to, const ptx::Instruction& inst) {
  const auto integer = [](Type type) { return type == Type::kU32 || type == Type::kS32; };
  const Family family = family_of(inst.op);
  VideoCode code;
  code.op = family.op;
  code.lanes = family.lanes;
  code.compare = inst.compare;
  const bool set = code.op == VideoOp::kSet;
  for (const Type type : {inst.types[0], inst.types[1], set ? Type::kU32 : inst.types[2]}) {
    if (!integer(type)) return usage_error("it takes .u32 and .s32 only");
  }
  code.d_signed = !set && inst.types[0] == Type::kS32;
  code.a_signed = inst.types[set ? 0 : 1] == Type::kS32;
  code.b_signed = inst.types[set ? 1 : 2] == Type::kS32;
  if (set && inst.compare > Compare::kGe) return usage_error("it compares by .eq .ne .lt .le .gt .ge only");
  code.saturate = inst.sat;
  for (const std::string_view word : inst.modifiers) {
    if (word == "clamp") code.clamp = true;
    if (word == "add") code.second = 1;
    if (word == "min") code.second = 2;
    if (word == "max") code.second = 3;
    if (word == "po") code.plus_one = true;
    if (word == "shr7") code.shift = 7;
    if (word == "shr15") code.shift = 15;
  }
  if (Status status = read_selectors(inst, &code); !status.ok()) return status;
  const bool needs_c = code.merge || code.second != 0 || code.lanes > 1 || code.op == VideoOp::kMad;
  if (needs_c != (inst.operands.size() == 4))
    return usage_error("its fourth operand is missing or one too many");
  if (code.merge && code.second != 0)
    return usage_error("a selector of the result excludes a second operation");
  const auto& operands = inst.operands;
  code.negate_product = operands[1].negated != operands[2].negated;
  code.negate_c = operands.size() == 4 && operands[3].negated;
  if (Status status = to.destination(operands[0], Type::kB32); !status.ok()) return status;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (Status status = to.source(operands[i], Type::kB32, code.op == VideoOp::kMad); !status.ok())
      return status;
  }
  code.pack(to.plan.aux);
  return {};
}

Functions find_video(const Form& form) {
  return is_video(form.inst.op) ? Functions{run_video, run_video} : Functions{};
}

}  // namespace echolo::vgpu::alu
