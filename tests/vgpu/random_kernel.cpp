#include "random_kernel.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace echolo::vgpu {
namespace {

using Word = std::uint32_t;

Word low(std::uint64_t wide) { return static_cast<Word>(wide); }
std::int32_t as_signed(Word value) { return static_cast<std::int32_t>(value); }

// A statement for three inputs and one result. In the text, %d is the result, %a, %b, %c the inputs, %t a
// fresh 32-bit register, %w and %v fresh 64-bit ones, %p a fresh predicate.
struct Arithmetic {
  const char* text;
  Word (*evaluate)(Word a, Word b, Word c);
};

Word prmt(Word a, Word b, Word c) {
  const std::uint64_t bytes = std::uint64_t{b} << 32U | a;
  Word out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned pick = c >> (4 * i) & 0xfU;
    Word byte = low(bytes >> (8 * (pick & 7U))) & 0xffU;
    if ((pick & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xffU : 0;
    out |= byte << (8 * i);
  }
  return out;
}

Word reversed(Word a) {
  Word out = 0;
  for (unsigned i = 0; i < 32; ++i) out |= (a >> i & 1U) << (31 - i);
  return out;
}

Word dp4a_unsigned(Word a, Word b, Word c) {
  for (unsigned i = 0; i < 32; i += 8) c += (a >> i & 0xffU) * (b >> i & 0xffU);
  return c;
}

constexpr Arithmetic kForms[] = {
    {"add.u32 %d, %a, %b;", [](Word a, Word b, Word) { return a + b; }},
    {"sub.s32 %d, %a, %b;", [](Word a, Word b, Word) { return a - b; }},
    {"mul.lo.u32 %d, %a, %b;", [](Word a, Word b, Word) { return a * b; }},
    {"mul.hi.u32 %d, %a, %b;", [](Word a, Word b, Word) { return low(std::uint64_t{a} * b >> 32U); }},
    {"mul.hi.s32 %d, %a, %b;",
     [](Word a, Word b, Word) {
       return low(static_cast<std::uint64_t>(std::int64_t{as_signed(a)} * as_signed(b)) >> 32U);
     }},
    {"mad.lo.s32 %d, %a, %b, %c;", [](Word a, Word b, Word c) { return a * b + c; }},
    {"and.b32 %d, %a, %b;", [](Word a, Word b, Word) { return a & b; }},
    {"or.b32 %d, %a, %b;", [](Word a, Word b, Word) { return a | b; }},
    {"xor.b32 %d, %a, %b;", [](Word a, Word b, Word) { return a ^ b; }},
    {"not.b32 %d, %a;", [](Word a, Word, Word) { return ~a; }},
    {"neg.s32 %d, %a;", [](Word a, Word, Word) { return 0U - a; }},
    {"lop3.b32 %d, %a, %b, %c, 0x96;", [](Word a, Word b, Word c) { return a ^ b ^ c; }},
    {"lop3.b32 %d, %a, %b, %c, 0xca;", [](Word a, Word b, Word c) { return (a & b) | (~a & c); }},
    {"shl.b32 %d, %a, %b;", [](Word a, Word b, Word) { return b > 31 ? 0U : a << b; }},
    {"shr.u32 %d, %a, %b;", [](Word a, Word b, Word) { return b > 31 ? 0U : a >> b; }},
    {"and.b32 %t, %b, 31; shr.s32 %d, %a, %t;",
     [](Word a, Word b, Word) { return static_cast<Word>(as_signed(a) >> (b & 31U)); }},
    {"shf.l.wrap.b32 %d, %a, %b, %c;",
     [](Word a, Word b, Word c) { return low((std::uint64_t{b} << 32U | a) << (c & 31U) >> 32U); }},
    {"shf.r.clamp.b32 %d, %a, %b, %c;",
     [](Word a, Word b, Word c) { return low((std::uint64_t{b} << 32U | a) >> std::min(c, 32U)); }},
    {"min.u32 %d, %a, %b;", [](Word a, Word b, Word) { return std::min(a, b); }},
    {"max.s32 %d, %a, %b;", [](Word a, Word b, Word) { return as_signed(a) > as_signed(b) ? a : b; }},
    {"popc.b32 %d, %a;", [](Word a, Word, Word) { return static_cast<Word>(std::popcount(a)); }},
    {"clz.b32 %d, %a;", [](Word a, Word, Word) { return static_cast<Word>(std::countl_zero(a)); }},
    {"brev.b32 %d, %a;", [](Word a, Word, Word) { return reversed(a); }},
    {"bfind.u32 %d, %a;",
     [](Word a, Word, Word) { return a == 0 ? ~0U : 31U - static_cast<Word>(std::countl_zero(a)); }},
    {"bfe.u32 %d, %a, 5, 11;", [](Word a, Word, Word) { return a >> 5U & 0x7ffU; }},
    {"bfi.b32 %d, %a, %b, 9, 7;",
     [](Word a, Word b, Word) { return (b & ~(0x7fU << 9U)) | (a & 0x7fU) << 9U; }},
    {"prmt.b32 %d, %a, %b, %c;", prmt},
    {"sad.u32 %d, %a, %b, %c;", [](Word a, Word b, Word c) { return c + (a > b ? a - b : b - a); }},
    {"dp4a.u32.u32 %d, %a, %b, %c;", dp4a_unsigned},
    {"or.b32 %t, %b, 1; div.u32 %d, %a, %t;", [](Word a, Word b, Word) { return a / (b | 1U); }},
    {"or.b32 %t, %b, 1; rem.u32 %d, %a, %t;", [](Word a, Word b, Word) { return a % (b | 1U); }},
    {"setp.lt.s32 %p, %a, %b; selp.b32 %d, %b, %c, %p;",
     [](Word a, Word b, Word c) { return as_signed(a) < as_signed(b) ? b : c; }},
    {"set.ge.u32.u32 %d, %a, %b;", [](Word a, Word b, Word) { return a >= b ? ~0U : 0U; }},
    {"mul.wide.u32 %w, %a, %b; cvt.u64.u32 %v, %c; add.u64 %w, %w, %v; shr.u64 %w, %w, 16; cvt.u32.u64 %d, "
     "%w;",
     [](Word a, Word b, Word c) { return low((std::uint64_t{a} * b + c) >> 16U); }},
    {"add.cc.u32 %t, %a, %b; addc.u32 %d, %c, 0;",
     [](Word a, Word b, Word c) { return c + ((std::uint64_t{a} + b) >> 32U != 0 ? 1U : 0U); }},
    {"cvt.s32.s8 %d, %a;", [](Word a, Word, Word) { return static_cast<Word>(static_cast<std::int8_t>(a)); }},
    {"cvt.u32.u16 %d, %a;", [](Word a, Word, Word) { return a & 0xffffU; }},
    {"abs.s32 %t, %a; add.u32 %d, %t, %b;",
     [](Word a, Word b, Word) { return (as_signed(a) < 0 ? 0U - a : a) + b; }},
};
constexpr auto kNumForms = static_cast<Word>(std::size(kForms));

// What may be combined into a word by anybody in any order.
struct Reduction {
  const char* op;
  Word (*combine)(Word old, Word value);
};
constexpr Reduction kReductions[] = {
    {"add.u32", [](Word a, Word b) { return a + b; }},
    {"xor.b32", [](Word a, Word b) { return a ^ b; }},
    {"or.b32", [](Word a, Word b) { return a | b; }},
    {"and.b32", [](Word a, Word b) { return a & b; }},
    {"min.u32", [](Word a, Word b) { return std::min(a, b); }},
    {"max.u32", [](Word a, Word b) { return std::max(a, b); }},
    {"min.s32", [](Word a, Word b) { return as_signed(a) < as_signed(b) ? a : b; }},
    {"max.s32", [](Word a, Word b) { return as_signed(a) > as_signed(b) ? a : b; }},
};
static_assert(std::size(kReductions) == kAccumulators);

enum class Kind : std::uint8_t {
  kArithmetic,
  kBranch,        // if (a < b) body else other
  kLoop,          // a fixed number of times
  kDivergedLoop,  // as often as a's low bits say
  kReduce,        // into accumulator `number`
  kFetch,         // an atomic with result on a word of this thread's own
  kLocal,         // through an array in local memory
  kCall,          // of a function
  kExchange,      // through shared memory, between two barriers
  kWarpExchange,  // the same within the warp
  kShuffle,
  kVote,
  kRedux,
  kEarlyExit,  // if (a < b) write the results and return: the last statement only
};

struct Statement {
  Kind kind{};
  Word d = 0, a = 0, b = 0, c = 0;  // variables
  Word number = 0, constant = 0;
  bool use_constant = false;  // instead of variable b
  std::vector<Statement> body, other;
};

using Body = std::vector<Statement>;

class Generator {
 public:
  explicit Generator(Choices& choices) : choices_(choices) {}

  Body body(int depth, bool uniform, Word most) {
    Body out;
    const Word n = 1 + choices_.below(most);
    for (Word i = 0; i < n && left_ > 0; ++i) out.push_back(statement(depth, uniform));
    return out;
  }

 private:
  Statement statement(int depth, bool uniform) {
    --left_;
    Statement s;
    s.d = choices_.below(kVariables);
    s.a = choices_.below(kVariables);
    s.b = choices_.below(kVariables);
    s.c = choices_.below(kVariables);
    s.use_constant = choices_.below(4) == 0;
    s.constant = choices_.word();
    const Word roll = choices_.below(100);
    if (depth > 0 && roll >= 46 && roll < 58) {
      s.kind = Kind::kBranch;
      s.body = body(depth - 1, false, 4);
      if (choices_.below(2) == 0) s.other = body(depth - 1, false, 4);
    } else if (depth > 0 && roll >= 58 && roll < 64) {
      s.kind = Kind::kLoop;
      s.number = 1 + choices_.below(4);
      s.body = body(depth - 1, uniform, 4);
    } else if (depth > 0 && roll >= 64 && roll < 70) {
      s.kind = Kind::kDivergedLoop;
      s.body = body(depth - 1, false, 3);
    } else if (roll >= 70 && roll < 75) {
      s.kind = Kind::kReduce;
      s.number = choices_.below(kAccumulators);
    } else if (roll >= 75 && roll < 78) {
      s.kind = Kind::kFetch;
      s.number = choices_.below(4);
    } else if (roll >= 78 && roll < 81) {
      s.kind = Kind::kLocal;
    } else if (roll >= 81 && roll < 84) {
      s.kind = Kind::kCall;
    } else if (uniform && roll >= 84) {
      constexpr Kind kTogether[] = {Kind::kExchange, Kind::kWarpExchange, Kind::kShuffle,
                                    Kind::kShuffle,  Kind::kVote,         Kind::kRedux};
      s.kind = kTogether[choices_.below(6)];
      s.number = choices_.below(64);
    } else {
      s.kind = Kind::kArithmetic;
      s.number = choices_.below(kNumForms);
    }
    return s;
  }

  Choices& choices_;
  int left_ = 40;
};

// ---- text ----

class Printer {
 public:
  Printer(Word threads, const Body& body) : threads_(threads) {
    print(body);
    text_ = header() + text_;
  }
  std::string text() const { return text_ + "DONE:\n" + stores() + "  ret;\n}\n"; }

 private:
  std::string header() const {
    std::string out =
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".func (.param .b32 r) mixed(.param .b32 x, .param .b32 y)\n{\n  .reg .b32 %x, %y;\n"
        "  ld.param.b32 %x, [x];\n  ld.param.b32 %y, [y];\n  mad.lo.u32 %x, %x, 3, %y;\n"
        "  shr.u32 %y, %x, 7;\n  xor.b32 %x, %x, %y;\n  st.param.b32 [r], %x;\n  ret;\n}\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 acc)\n{\n"
        "  .reg .b32 %me, %lane, %g;\n  .reg .b64 %in, %out, %acc, %own;\n";
    out += "  .reg .b32 %x<" + std::to_string(kVariables) + ">;\n";
    out += "  .reg .b32 %t<" + std::to_string(temporaries_ + 1) + ">;\n  .reg .b64 %w<" +
           std::to_string(temporaries_ + 1) + ">;\n  .reg .pred %p<" + std::to_string(temporaries_ + 1) +
           ">;\n";
    out += "  .shared .align 4 .b8 cells[" + std::to_string(4 * threads_) + "];\n";
    out += "  .local .align 4 .b8 array[32];\n";
    out +=
        "  mov.u32 %me, %tid.x;\n  mov.u32 %lane, %laneid;\n  mov.u32 %g, %ctaid.x;\n"
        "  ld.param.u64 %in, [in];\n  ld.param.u64 %out, [out];\n  ld.param.u64 %acc, [acc];\n"
        "  mad.lo.u32 %g, %g, " +
        std::to_string(threads_) + ", %me;\n  mul.wide.u32 %own, %g, " + std::to_string(4 * kVariables) +
        ";\n  add.u64 %in, %in, %own;\n  add.u64 %own, %out, %own;\n";
    for (Word i = 0; i < kVariables; ++i)
      out += "  ld.global.u32 %x" + std::to_string(i) + ", [%in+" + std::to_string(4 * i) + "];\n";
    return out;
  }
  static std::string stores() {
    std::string out;
    for (Word i = 0; i < kVariables; ++i)
      out += "  st.global.u32 [%own+" + std::to_string(4 * i) + "], %x" + std::to_string(i) + ";\n";
    return out;
  }
  static std::string x(Word variable) { return "%x" + std::to_string(variable); }
  std::string fresh(char prefix) { return std::string("%") + prefix + std::to_string(++temporaries_); }
  std::string label() { return "L" + std::to_string(++labels_); }
  std::string second(const Statement& s) {
    if (!s.use_constant) return x(s.b);
    const std::string t = fresh('t');
    line("mov.u32 " + t + ", " + std::to_string(s.constant) + ";");
    return t;
  }
  void line(const std::string& what) { text_ += "  " + what + "\n"; }

  void print(const Body& body) {
    for (const Statement& s : body) print(s);
  }

  void print(const Statement& s) {
    switch (s.kind) {
      case Kind::kArithmetic: {
        std::string what = kForms[s.number].text;
        const std::string b = second(s);
        const std::string t = fresh('t'), w = fresh('w'), v = fresh('w'), p = fresh('p');
        std::string out;
        for (std::size_t i = 0; i < what.size(); ++i) {
          if (what[i] != '%') {
            out += what[i];
            continue;
          }
          const char name = what[++i];
          out += name == 'd'   ? x(s.d)
                 : name == 'a' ? x(s.a)
                 : name == 'b' ? b
                 : name == 'c' ? x(s.c)
                 : name == 't' ? t
                 : name == 'w' ? w
                 : name == 'v' ? v
                               : p;
        }
        line(out);
        break;
      }
      case Kind::kBranch: {
        const std::string p = fresh('p'), otherwise = label(), end = label();
        const std::string b = second(s);
        line("setp.ge.u32 " + p + ", " + x(s.a) + ", " + b + ";");
        line("@" + p + " bra " + otherwise + ";");
        print(s.body);
        line("bra " + end + ";");
        text_ += otherwise + ":\n";
        print(s.other);
        text_ += end + ":\n";
        break;
      }
      case Kind::kLoop:
      case Kind::kDivergedLoop: {
        const std::string t = fresh('t'), p = fresh('p'), begin = label(), end = label();
        if (s.kind == Kind::kLoop) {
          line("mov.u32 " + t + ", " + std::to_string(s.number) + ";");
        } else {
          line("and.b32 " + t + ", " + x(s.a) + ", 7;");
        }
        text_ += begin + ":\n";
        line("setp.eq.u32 " + p + ", " + t + ", 0;");
        line("@" + p + " bra " + end + ";");
        print(s.body);
        line("sub.u32 " + t + ", " + t + ", 1;");
        line("bra " + begin + ";");
        text_ += end + ":\n";
        break;
      }
      case Kind::kReduce:
        line(std::string("red.relaxed.gpu.global.") + kReductions[s.number].op + " [%acc+" +
             std::to_string(4 * s.number) + "], " + x(s.a) + ";");
        break;
      case Kind::kFetch: {
        constexpr const char* kOps[] = {"add.u32", "exch.b32", "max.u32", "xor.b32"};
        line("st.global.u32 [%own], " + x(s.a) + ";");
        line(std::string("atom.relaxed.gpu.global.") + kOps[s.number] + " " + x(s.d) + ", [%own], " + x(s.b) +
             ";");
        line("ld.global.u32 " + x(s.c) + ", [%own];");
        break;
      }
      case Kind::kLocal: {
        const std::string w = fresh('w'), v = fresh('w'), t = fresh('t');
        line("mov.u64 " + w + ", array;");
        for (Word i = 0; i < 8; ++i)
          line("st.local.u32 [" + w + "+" + std::to_string(4 * i) + "], " + x((s.b + i) % kVariables) + ";");
        line("and.b32 " + t + ", " + x(s.a) + ", 7;");
        line("mul.wide.u32 " + v + ", " + t + ", 4;");
        line("add.u64 " + v + ", " + v + ", " + w + ";");
        line("ld.local.u32 " + x(s.d) + ", [" + v + "];");
        break;
      }
      case Kind::kCall:
        line("{ .param .b32 p0; .param .b32 p1; .param .b32 q;");
        line("st.param.b32 [p0], " + x(s.a) + ";");
        line("st.param.b32 [p1], " + x(s.b) + ";");
        line("call.uni (q), mixed, (p0, p1);");
        line("ld.param.b32 " + x(s.d) + ", [q]; }");
        break;
      case Kind::kExchange:
      case Kind::kWarpExchange: {
        const bool warp = s.kind == Kind::kWarpExchange;
        const std::string sync = warp ? "bar.warp.sync 0xffffffff;" : "bar.sync 0;";
        const std::string t = fresh('t'), u = fresh('t'), base = fresh('t');
        line("mov.u32 " + base + ", cells;");
        line("shl.b32 " + t + ", %me, 2;");
        line("add.u32 " + t + ", " + t + ", " + base + ";");
        line("st.shared.u32 [" + t + "], " + x(s.a) + ";");
        line(sync);
        line("add.u32 " + u + ", " + (warp ? "%lane" : "%me") + ", " + std::to_string(s.number) + ";");
        line("rem.u32 " + u + ", " + u + ", " + std::to_string(warp ? 32 : threads_) + ";");
        if (warp) {
          line("sub.u32 " + u + ", " + u + ", %lane;");
          line("add.u32 " + u + ", " + u + ", %me;");
        }
        line("shl.b32 " + u + ", " + u + ", 2;");
        line("add.u32 " + u + ", " + u + ", " + base + ";");
        line("ld.shared.u32 " + x(s.d) + ", [" + u + "];");
        // The cells' next use may be by the whole block or by the warp only.
        line("bar.sync 0;");
        break;
      }
      case Kind::kShuffle: {
        constexpr const char* kModes[] = {"idx", "up", "down", "bfly"};
        const Word mode = s.number % 4, by = s.number / 4;
        line(std::string("shfl.sync.") + kModes[mode] + ".b32 " + x(s.d) + ", " + x(s.a) + ", " +
             std::to_string(by) + ", " + (mode == 1 ? "0" : "31") + ", 0xffffffff;");
        break;
      }
      case Kind::kVote: {
        const std::string p = fresh('p'), b = second(s);
        line("setp.lt.u32 " + p + ", " + x(s.a) + ", " + b + ";");
        line("vote.sync.ballot.b32 " + x(s.d) + ", " + p + ", 0xffffffff;");
        break;
      }
      case Kind::kRedux: {
        constexpr const char* kOps[] = {"add.u32", "min.u32", "max.s32", "xor.b32"};
        line(std::string("redux.sync.") + kOps[s.number % 4] + " " + x(s.d) + ", " + x(s.a) +
             ", 0xffffffff;");
        break;
      }
      case Kind::kEarlyExit: {
        const std::string p = fresh('p'), b = second(s);
        line("setp.ge.u32 " + p + ", " + x(s.a) + ", " + b + ";");
        line("@" + p + " bra DONE;");
        text_ += stores() + "  ret;\n";
        break;
      }
    }
  }

  Word threads_;
  Word temporaries_ = 0, labels_ = 0;
  std::string text_;
};

// ---- evaluation: one block, statement by statement, thread by thread ----

class Evaluator {
 public:
  Evaluator(Word threads, std::span<Word> variables, std::vector<Word>& accumulators)
      : threads_(threads), variables_(variables), accumulators_(accumulators) {}

  using Active = std::vector<bool>;
  void run(const Body& body) { run(body, Active(threads_, true)); }

 private:
  Word& x(Word thread, Word variable) { return variables_[thread * kVariables + variable]; }
  Word second(const Statement& s, Word thread) { return s.use_constant ? s.constant : x(thread, s.b); }

  void run(const Body& body, const Active& active) {
    for (const Statement& s : body) run(s, active);
  }

  void run(const Statement& s, const Active& active) {
    switch (s.kind) {
      case Kind::kBranch: {
        Active then(threads_), otherwise(threads_);
        for (Word i = 0; i < threads_; ++i) {
          const bool less = x(i, s.a) < second(s, i);
          then[i] = active[i] && less;
          otherwise[i] = active[i] && !less;
        }
        run(s.body, then);
        run(s.other, otherwise);
        return;
      }
      case Kind::kLoop:
        for (Word n = 0; n < s.number; ++n) run(s.body, active);
        return;
      case Kind::kDivergedLoop: {
        std::vector<Word> times(threads_);
        for (Word i = 0; i < threads_; ++i) times[i] = active[i] ? x(i, s.a) & 7U : 0;
        for (Word n = 0; n < 7; ++n) {
          Active still(threads_);
          for (Word i = 0; i < threads_; ++i) still[i] = n < times[i];
          run(s.body, still);
        }
        return;
      }
      case Kind::kExchange:
      case Kind::kWarpExchange:
      case Kind::kShuffle:
      case Kind::kVote:
      case Kind::kRedux:
        together(s);
        return;
      default:
        for (Word i = 0; i < threads_; ++i) {
          if (active[i]) alone(s, i);
        }
    }
  }

  void alone(const Statement& s, Word i) {
    switch (s.kind) {
      case Kind::kArithmetic:
        x(i, s.d) = kForms[s.number].evaluate(x(i, s.a), second(s, i), x(i, s.c));
        break;
      case Kind::kReduce:
        accumulators_[s.number] = kReductions[s.number].combine(accumulators_[s.number], x(i, s.a));
        break;
      case Kind::kFetch: {
        const Word old = x(i, s.a), value = x(i, s.b);
        const Word now[] = {old + value, value, std::max(old, value), old ^ value};
        x(i, s.d) = old;
        x(i, s.c) = now[s.number];
        break;
      }
      case Kind::kLocal:
        x(i, s.d) = x(i, (s.b + (x(i, s.a) & 7U)) % kVariables);
        break;
      case Kind::kCall: {
        const Word v = x(i, s.a) * 3 + x(i, s.b);
        x(i, s.d) = v ^ v >> 7U;
        break;
      }
      default:
        break;
    }
  }

  void together(const Statement& s) {
    std::vector<Word> from(threads_);
    for (Word i = 0; i < threads_; ++i) from[i] = x(i, s.a);
    std::vector<Word> to(threads_);
    for (Word i = 0; i < threads_; ++i) {
      const Word warp = i / 32 * 32, lane = i % 32;
      if (s.kind == Kind::kExchange) {
        to[i] = from[(i + s.number) % threads_];
      } else if (s.kind == Kind::kWarpExchange) {
        to[i] = from[warp + (lane + s.number) % 32];
      } else if (s.kind == Kind::kShuffle) {
        const Word mode = s.number % 4, by = s.number / 4;
        const Word source = mode == 0 ? by : mode == 1 ? lane - by : mode == 2 ? lane + by : lane ^ by;
        to[i] = from[warp + (source < 32 ? source : lane)];
      } else if (s.kind == Kind::kVote) {
        for (Word k = 0; k < 32; ++k) to[i] |= (from[warp + k] < second(s, warp + k) ? 1U : 0U) << k;
      } else {
        to[i] = from[warp];
        for (Word k = 1; k < 32; ++k) {
          const Word v = from[warp + k];
          const Word next[] = {to[i] + v, std::min(to[i], v), as_signed(to[i]) > as_signed(v) ? to[i] : v,
                               to[i] ^ v};
          to[i] = next[s.number % 4];
        }
      }
    }
    for (Word i = 0; i < threads_; ++i) x(i, s.d) = to[i];
  }

  Word threads_;
  std::span<Word> variables_;
  std::vector<Word>& accumulators_;
};

}  // namespace

std::uint32_t Choices::below(std::uint32_t n) {
  if (seeded_) return static_cast<std::uint32_t>(rng_.below(n));
  std::uint32_t value = 0;
  const int width = n > 256 ? 2 : 1;
  for (int i = 0; i < width; ++i) value = value << 8U | (at_ < bytes_.size() ? bytes_[at_++] : 0U);
  return value % n;
}

std::uint32_t Choices::word() {
  const std::uint32_t kind = below(8);
  if (kind == 0) return below(8);
  if (kind == 1) return 0U - below(8);
  if (kind == 2) return 1U << below(32);
  return below(65536) << 16U | below(65536);
}

RandomKernel make_random_kernel(Choices& choices) {
  RandomKernel kernel;
  kernel.threads = 32 * (1 + choices.below(4));
  kernel.blocks = 1 + choices.below(4);
  Body body = Generator(choices).body(3, true, 14);
  if (choices.below(3) == 0) {
    Statement leave;
    leave.kind = Kind::kEarlyExit;
    leave.a = choices.below(kVariables);
    leave.b = choices.below(kVariables);
    body.push_back(leave);
  }
  kernel.ptx = Printer(kernel.threads, body).text();
  Rng rng(choices.word());
  const std::size_t n = std::size_t{kernel.blocks} * kernel.threads * kVariables;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t value = rng.next();
    kernel.in.push_back((value >> 40U) % 4 == 0 ? static_cast<Word>(value % 40) : static_cast<Word>(value));
  }
  for (Word i = 0; i < kAccumulators; ++i) kernel.acc.push_back(static_cast<Word>(rng.next()));
  kernel.out = kernel.in;
  kernel.acc_out = kernel.acc;
  for (Word block = 0; block < kernel.blocks; ++block) {
    const std::size_t per_block = std::size_t{kernel.threads} * kVariables;
    Evaluator(kernel.threads, std::span(kernel.out).subspan(block * per_block, per_block), kernel.acc_out)
        .run(body);
  }
  return kernel;
}

}  // namespace echolo::vgpu
