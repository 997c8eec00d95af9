#include "alu_harness.hpp"

#include <cmath>
#include <map>

namespace echolo::vgpu::alu_test {
namespace {

constexpr std::uint32_t kSlotBytes = 512;  // every register gets room for 128 bits a lane

struct Group {
  std::string prefix, type;
  int count, bits;
};
const std::vector<Group>& groups() {
  static const std::vector<Group> all = {{"%p", "pred", 8, 1},  {"%rs", "b16", 16, 16}, {"%r", "b32", 32, 32},
                                         {"%f", "f32", 8, 32},  {"%rd", "b64", 24, 64}, {"%fd", "f64", 8, 64},
                                         {"%q", "b128", 4, 128}};
  return all;
}
struct Place {
  std::uint32_t offset = 0;
  int bits = 0;
};
const std::map<std::string, Place>& places() {
  static const std::map<std::string, Place> all = [] {
    std::map<std::string, Place> map;
    std::uint32_t offset = 0;
    for (const Group& group : groups()) {
      for (int i = 0; i < group.count; ++i, offset += kSlotBytes)
        map[group.prefix + std::to_string(i)] = {offset, group.bits};
    }
    return map;
  }();
  return all;
}

void store(std::uint8_t* array, int bits, int lane, std::uint64_t value, std::uint64_t high) {
  const auto at = static_cast<std::size_t>(lane);
  if (bits == 1) {
    std::uint32_t word = 0;
    std::memcpy(&word, array, 4);
    word = (word & ~(1U << at)) | (value != 0 ? 1U << at : 0U);
    std::memcpy(array, &word, 4);
  } else if (bits == 128) {
    std::memcpy(array + at * 8, &value, 8);
    std::memcpy(array + 256 + at * 8, &high, 8);
  } else {
    std::memcpy(array + at * static_cast<std::size_t>(bits / 8), &value, static_cast<std::size_t>(bits / 8));
  }
}

}  // namespace

Registers::Registers() : storage((places().size() + 1) * kSlotBytes / sizeof(Line)) {
  std::memset(bytes(), 0, storage.size() * sizeof(Line));
}

std::uint64_t Registers::get(const std::string& name, int lane) const {
  const Place place = places().at(name);
  const std::uint8_t* array = bytes() + place.offset;
  std::uint64_t value = 0;
  if (place.bits == 1) {
    std::memcpy(&value, array, 4);
    return (value >> static_cast<unsigned>(lane)) & 1U;
  }
  const auto size = static_cast<std::size_t>(place.bits == 128 ? 8 : place.bits / 8);
  std::memcpy(&value, array + static_cast<std::size_t>(lane) * size, size);
  return value;
}
std::uint64_t Registers::get_high(const std::string& name, int lane) const {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes() + places().at(name).offset + 256 + static_cast<std::size_t>(lane) * 8, 8);
  return value;
}
void Registers::set(const std::string& name, int lane, std::uint64_t value, std::uint64_t high) {
  const Place place = places().at(name);
  store(bytes() + place.offset, place.bits, lane, value, high);
}

Prepared::Prepared(const std::string& instruction) {
  std::string text = ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n";
  for (const Group& group : groups()) {
    text += ".reg ." + group.type + " " + group.prefix + "<" + std::to_string(group.count) + ">;\n";
  }
  text += instruction + ";\nret;\n}\n";
  Result<ptx::Module> module = ptx::parse(text, "test.ptx");
  if (!module.ok()) {
    error_ = module.error().render();
    return;
  }
  module_ = std::move(module).value();
  const ptx::Function& function = module_.functions.at(0);
  bool mine = false;
  Result<Plan> plan = plan_alu(module_, function, function.body.at(0), &mine);
  if (!mine) {
    error_ = "not an ALU instruction";
    return;
  }
  if (!plan.ok()) {
    error_ = plan.error().message;
    return;
  }
  plan_ = std::move(plan).value();
  pool_.resize(plan_.operands.size() * kSlotBytes / sizeof(Registers::Line));
  std::uint32_t pool_at = 0;
  for (const PlanOperand& operand : plan_.operands) {
    if (operand.kind == PlanOperand::Kind::kRegister) {
      slots_.push_back(
          {places().at(function.registers.at(static_cast<std::size_t>(operand.index)).name).offset});
    } else if (operand.destination) {
      slots_.push_back({static_cast<std::uint32_t>(places().size()) * kSlotBytes});  // the scratch slot
    } else {
      std::uint8_t* array = pool_.data()->bytes + pool_at;
      for (int lane = 0; lane < kWarpSize; ++lane)
        store(array, operand.width, lane, operand.value[0], operand.value[1]);
      slots_.push_back({pool_at | Slot::kPool});
      pool_at += kSlotBytes;
    }
  }
}

void Prepared::run(Registers& registers, std::uint32_t mask) const {
  Inst inst;
  inst.n_operands = static_cast<std::uint8_t>(slots_.size());
  inst.operands = slots_.data();
  inst.aux[0] = plan_.aux[0];
  inst.aux[1] = plan_.aux[1];
  const Lanes lanes{registers.bytes(), pool_.empty() ? nullptr : pool_.data()->bytes, &registers.carry};
  (mask == kAllLanes ? plan_.alu_full : plan_.alu)(lanes, inst, mask);
}

const std::vector<std::uint64_t>& edge_values(int bits, bool floating) {
  static const std::vector<std::uint64_t> integers16 = {
      0,    1,    2,     3,      7,      8,      15,     16,     31,     32,     0x7f,
      0x80, 0xff, 0x100, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 0x5555, 0xaaaa};
  static const std::vector<std::uint64_t> integers32 = {
      0,          1,          2,          3,          7,          8,          16,
      31,         32,         33,         63,         64,         127,        128,
      255,        256,        0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffff,
      0x800000,   0x1000001,  0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
      0xffffffff, 0x55555555, 0xaaaaaaaa, 0x80808080, 0x01020304};
  static const std::vector<std::uint64_t> integers64 = {0,
                                                        1,
                                                        2,
                                                        3,
                                                        31,
                                                        32,
                                                        63,
                                                        64,
                                                        65,
                                                        0xff,
                                                        0xffff,
                                                        0x7fffffff,
                                                        0x80000000,
                                                        0xffffffff,
                                                        0x100000000,
                                                        0x1fffffffffffff,
                                                        0x20000000000001,
                                                        0x7fffffffffffffff,
                                                        0x8000000000000000,
                                                        0x8000000000000001,
                                                        0xfffffffffffffffe,
                                                        0xffffffffffffffff,
                                                        0x5555555555555555,
                                                        0xaaaaaaaaaaaaaaaa};
  static const std::vector<std::uint64_t> f32 = {
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
      0x80800000, 0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x3f000000,
      0x3fc00000, 0x40200000, 0xc0200000, 0x7f7fffff, 0xff7fffff, 0x7f7ffffe, 0x7f800000,
      0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x4b000000, 0x4b000001, 0x4a800001,
      0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000,
      0xdf000000, 0x5f800000, 0x34000000, 0x33800000, 0x33800001, 0x477fe000, 0x477ff000,
      0x38800000, 0x387fffff, 0x33000000, 0x33000001, 0x7e800000, 0x7e800001, 0x7f000000};
  static const std::vector<std::uint64_t> f64 = {0,
                                                 0x8000000000000000,
                                                 1,
                                                 0x8000000000000001,
                                                 0x000fffffffffffff,
                                                 0x0010000000000000,
                                                 0x8010000000000000,
                                                 0x3ff0000000000000,
                                                 0xbff0000000000000,
                                                 0x3ff0000000000001,
                                                 0x3fefffffffffffff,
                                                 0x3fe0000000000000,
                                                 0x3ff8000000000000,
                                                 0x4004000000000000,
                                                 0xc004000000000000,
                                                 0x7fefffffffffffff,
                                                 0xffefffffffffffff,
                                                 0x7ff0000000000000,
                                                 0xfff0000000000000,
                                                 0x7ff8000000000000,
                                                 0xfff8000000000123,
                                                 0x7ff0000000000001,
                                                 0x41dfffffffc00000,
                                                 0x41e0000000000000,
                                                 0xc1e0000000000000,
                                                 0xc1e0000000200000,
                                                 0x41efffffffe00000,
                                                 0x43e0000000000000,
                                                 0xc3e0000000000000,
                                                 0x43f0000000000000,
                                                 0x4330000000000001,
                                                 0x36a0000000000000,
                                                 0x3690000000000000,
                                                 0x3690000000000001,
                                                 0x47efffffe0000000,
                                                 0x47efffffefffffff,
                                                 0x47effffff0000000,
                                                 0x380fffffffffffff,
                                                 0x3810000000000000};
  static const std::vector<std::uint64_t> f16 = {
      0,      0x8000, 1,      0x8001, 0x3ff,  0x83ff, 0x400,  0x8400, 0x401,  0x3c00, 0xbc00, 0x3c01, 0x3bff,
      0x3800, 0x3e00, 0x7bff, 0xfbff, 0x7bfe, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x3f80, 0xbf80, 0x3f81,
      0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x80,   0x7f,   0x8080, 0x4100, 0x6800, 0x6801};
  if (floating) return bits == 16 ? f16 : (bits == 32 ? f32 : f64);
  return bits == 16 ? integers16 : (bits == 32 ? integers32 : integers64);
}

std::uint64_t Values::random() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

std::uint64_t Values::next() {
  const std::uint64_t choice = random();
  const std::uint64_t mask = bits_ == 64 ? ~0ULL : (1ULL << static_cast<unsigned>(bits_)) - 1;
  const std::vector<std::uint64_t>& edges = edge_values(bits_, floating_);
  if (choice % 4 == 0) return edges[(choice >> 8U) % edges.size()];
  const std::uint64_t value = random();
  if (!floating_) return (choice % 4 == 1 ? value >> (choice >> 8U) % 64 : value) & mask;
  if (choice % 4 == 1) return value & mask;
  // Numbers of ordinary size, so that sums cancel and products meet.
  const double small = std::ldexp(static_cast<double>(static_cast<std::int64_t>(value)),
                                  -63 + static_cast<int>((choice >> 8U) % 24) - 12);
  if (bits_ == 64) return bits_of(small);
  if (bits_ == 32) return bits_of(static_cast<float>(small));
  return bits_of(static_cast<float>(small)) >> 16U;
}

}  // namespace echolo::vgpu::alu_test
