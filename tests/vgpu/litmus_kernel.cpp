#include "litmus_kernel.hpp"

#include <algorithm>
#include <map>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using litmus::Op;

constexpr int kSlot = 256;  // bytes from one location, or thread's registers, to the next
constexpr int kMostRegisters = kSlot / 8;
constexpr int kPadding = 6;  // idle instructions after each one, so that turns end between any two

const char* scope_name(model::Scope scope) {
  switch (scope) {
    case model::Scope::kCta:
      return "cta";
    case model::Scope::kCluster:
      return "cluster";
    case model::Scope::kGpu:
      return "gpu";
    case model::Scope::kSys:
      break;
  }
  return "sys";
}

const char* compare_name(litmus::Compare compare) {
  static constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  return kNames[static_cast<std::size_t>(compare)];
}

// Null: PTX has no such instruction on 64-bit words.
const char* arithmetic_name(litmus::Arithmetic arithmetic) {
  using A = litmus::Arithmetic;
  switch (arithmetic) {
    case A::kAdd:
      return "add.s64";
    case A::kSub:
      return "sub.s64";
    case A::kMul:
      return "mul.lo.s64";
    case A::kAnd:
      return "and.b64";
    case A::kOr:
      return "or.b64";
    case A::kXor:
      return "xor.b64";
    case A::kMin:
      return "min.s64";
    case A::kMax:
      return "max.s64";
    default:
      return nullptr;
  }
}

const char* atomic_name(litmus::Arithmetic arithmetic) {
  using A = litmus::Arithmetic;
  switch (arithmetic) {
    case A::kAdd:
      return "add.u64";
    case A::kAnd:
      return "and.b64";
    case A::kOr:
      return "or.b64";
    case A::kXor:
      return "xor.b64";
    case A::kMin:
      return "min.s64";
    case A::kMax:
      return "max.s64";
    case A::kExch:
      return "exch.b64";
    case A::kCas:
      return "cas.b64";
    default:
      return nullptr;
  }
}

struct BlockOfThreads {
  int gpu = 0, cluster = 0, cta = 0;
  std::vector<std::size_t> threads;
};

// Blocks, by GPU.
std::map<int, std::vector<BlockOfThreads>> places(const litmus::Program& program) {
  std::map<int, std::vector<BlockOfThreads>> out;
  for (std::size_t t = 0; t < program.threads.size(); ++t) {
    const model::Place& place = program.threads[t].place;
    auto& blocks = out[place.gpu];
    auto at = std::find_if(blocks.begin(), blocks.end(), [&](const BlockOfThreads& block) {
      return block.cluster == place.cluster && block.cta == place.cta;
    });
    if (at == blocks.end()) at = blocks.insert(at, {place.gpu, place.cluster, place.cta, {}});
    at->threads.push_back(t);
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const litmus::Program& program) : program_(program) {}

  // False: it can't be said in PTX.
  bool thread(std::size_t index) {
    const litmus::Thread& thread = program_.threads[index];
    if (thread.registers.size() > kMostRegisters) return false;
    name_ = "T" + std::to_string(index);
    line("{");
    line(".reg .b64 %v<" + std::to_string(thread.registers.size() + 1) + ">;");
    line(".reg .b64 %idle;");
    for (std::size_t r = 0; r < thread.registers.size(); ++r)
      line("mov.b64 " + reg(static_cast<int>(r)) + ", " +
           std::to_string(r < thread.initial.size() ? thread.initial[r] : 0) + ";");
    line("mov.b64 %idle, 0;");
    for (std::size_t i = 0; i < thread.code.size(); ++i) {
      out += label(static_cast<int>(i)) + ":\n";
      if (!instruction(thread.code[i])) return false;
      for (int k = 0; k < kPadding; ++k) line("add.s64 %idle, %idle, 1;");
    }
    out += label(static_cast<int>(thread.code.size())) + ":\n";
    for (std::size_t r = 0; r < thread.registers.size(); ++r) {
      line("st.weak.global.b64 [%results+" + std::to_string(index * kSlot + r * 8) + "], " +
           reg(static_cast<int>(r)) + ";");
    }
    line("ret;");
    line("}");
    return true;
  }
  void line(const std::string& text) { out += "  " + text + "\n"; }

  std::string out;

 private:
  static std::string reg(int index) { return "%v" + std::to_string(index); }
  std::string label(int index) const { return name_ + "_" + std::to_string(index); }
  static std::string value(const litmus::Operand& operand) {
    return operand.reg >= 0 ? reg(operand.reg) : std::to_string(operand.constant);
  }
  std::string address(int index) const {
    return "[%words+" + std::to_string(program_.addresses[static_cast<std::size_t>(index)].location * kSlot) +
           "]";
  }

  bool instruction(const litmus::Instruction& now) {
    if (now.op != Op::kFence && now.proxy != model::Proxy::kGeneric) return false;
    const std::string scope = std::string(".") + scope_name(now.scope);
    switch (now.op) {
      case Op::kMove:
        line("mov.b64 " + reg(now.destination) + ", " + value(now.a) + ";");
        return true;
      case Op::kArithmetic: {
        const char* name = arithmetic_name(now.arithmetic);
        if (name == nullptr) return false;
        line("mov.b64 %left, " + value(now.a) + ";");
        line(std::string(name) + " " + reg(now.destination) + ", %left, " + value(now.b) + ";");
        return true;
      }
      case Op::kLoad: {
        const std::string how = !now.strong ? ".weak" : (now.acquire ? ".acquire" : ".relaxed") + scope;
        line("ld" + how + ".global.b64 " + reg(now.destination) + ", " + address(now.address) + ";");
        return true;
      }
      case Op::kStore: {
        const std::string how = !now.strong ? ".weak" : (now.release ? ".release" : ".relaxed") + scope;
        line("mov.b64 %left, " + value(now.a) + ";");
        line("st" + how + ".global.b64 " + address(now.address) + ", %left;");
        return true;
      }
      case Op::kAtomic: {
        const char* name = atomic_name(now.arithmetic);
        if (name == nullptr) return false;
        const std::string order = now.acquire && now.release ? ".acq_rel"
                                  : now.acquire              ? ".acquire"
                                  : now.release              ? ".release"
                                                             : ".relaxed";
        const std::string third = now.arithmetic == litmus::Arithmetic::kCas ? ", " + value(now.b) : "";
        const std::string destination = now.destination >= 0 ? reg(now.destination) : "%left";
        line("mov.b64 %right, " + value(now.a) + ";");
        line("atom" + order + scope + ".global." + name + " " + destination + ", " + address(now.address) +
             ", %right" + third + ";");
        return true;
      }
      case Op::kFence:
        line(std::string("fence.") + (now.sc ? "sc" : "acq_rel") + scope + ";");
        return true;
      case Op::kBranch:
        line("mov.b64 %left, " + value(now.a) + ";");
        line("mov.b64 %right, " + value(now.b) + ";");
        line(std::string("setp.") + compare_name(now.compare) + ".s64 %taken, %left, %right;");
        line("@%taken bra " + label(now.target) + ";");
        return true;
      case Op::kJump:
        line("bra " + label(now.target) + ";");
        return true;
      default:
        return false;
    }
  }

  const litmus::Program& program_;
  std::string name_;
};

}  // namespace

std::optional<std::string> litmus_ptx(const litmus::Program& program) {
  Writer writer(program);
  writer.out = ".version 8.8\n.target sm_90a\n.address_size 64\n";
  for (const auto& [gpu, blocks] : places(program)) {
    writer.out +=
        ".visible .entry gpu" + std::to_string(gpu) + "(.param .u64 words, .param .u64 results) {\n";
    writer.line(".reg .b64 %words, %results, %left, %right;");
    writer.line(".reg .b32 %block, %warp;");
    writer.line(".reg .pred %taken, %mine;");
    writer.line("ld.param.u64 %words, [words];");
    writer.line("ld.param.u64 %results, [results];");
    writer.line("mov.u32 %block, %ctaid.x;");
    writer.line("mov.u32 %warp, %tid.x;");
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t w = 0; w < blocks[b].threads.size(); ++w) {
        writer.line("setp.eq.u32 %mine, %block, " + std::to_string(b) + ";");
        writer.line("setp.eq.and.u32 %mine, %warp, " + std::to_string(w * 32) + ", %mine;");
        writer.line("@%mine bra START_" + std::to_string(blocks[b].threads[w]) + ";");
      }
    }
    writer.line("ret;");
    for (const BlockOfThreads& block : blocks) {
      for (const std::size_t thread : block.threads) {
        writer.out += "START_" + std::to_string(thread) + ":\n";
        if (!writer.thread(thread)) return std::nullopt;
      }
    }
    writer.out += "}\n";
  }
  return writer.out;
}

std::optional<std::vector<std::int64_t>> run_litmus(const litmus::Program& program, const std::string& ptx,
                                                    Policy policy, std::uint64_t seed) {
  const auto kernels = places(program);
  const int n_pes = std::max(1, static_cast<int>(kernels.size()));
  Node node(ptx, n_pes, policy, seed);
  Memory& memory = node.machine->memory();
  const auto symmetric = [&](std::size_t slots) {
    const auto made = memory.allocate_symmetric(std::max<std::size_t>(slots, 1) * kSlot, 256, "litmus", {});
    return made.ok() ? made->front() : 0;
  };
  const std::uint64_t words = symmetric(program.locations.size());
  const std::uint64_t results = symmetric(program.threads.size());
  Memory::Accessor nobody;
  nobody.what = "litmus";
  for (std::size_t i = 0; i < program.locations.size(); ++i)
    memory.write(words + i * kSlot, &program.locations[i].initial, 8, nobody);
  memory.fill(results, 0, std::max<std::size_t>(program.threads.size(), 1) * kSlot, nobody);
  int pe = 0;
  for (const auto& [gpu, blocks] : kernels) {
    std::size_t warps = 1;
    for (const BlockOfThreads& block : blocks) warps = std::max(warps, block.threads.size());
    node.launch("gpu" + std::to_string(gpu), {static_cast<std::uint32_t>(blocks.size()), 1, 1},
                {static_cast<std::uint32_t>(warps * 32), 1, 1}, Params().add(words).add(results), pe++);
  }
  if (node.finish() != Machine::Progress::kIdle) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const litmus::Observed& part : program.observed) {
    std::int64_t value = 0;
    const std::uint64_t at = part.thread >= 0 ? results + static_cast<std::uint64_t>(part.thread) * kSlot +
                                                    static_cast<std::uint64_t>(part.index) * 8
                                              : words + static_cast<std::uint64_t>(part.index) * kSlot;
    memory.read(at, &value, 8, nobody);
    values.push_back(value);
  }
  return values;
}

}  // namespace echolo::vgpu
