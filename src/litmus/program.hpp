// A litmus test as a value: threads of a few PTX instructions, initial state, and what to ask of the final
// states. The text form is Dat3M's PTX litmus syntax with extensions; docs/memory-model.md lists it all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/event.hpp"

namespace echolo::litmus {

enum class Op : std::uint8_t {
  kLoad,
  kStore,
  kAtomic,  // atom, and red, whose destination is -1
  kFence,
  kProxyFence,
  kAliasFence,
  kBarrierSync,
  kBarrierArrive,
  kMove,
  kArithmetic,
  kBranch,
  kJump,
  kPut,        // an agent reads `source` and writes `address`, then `signal` where there is one
  kSignal,     // an agent writes `address`
  kOrderPuts,  // nvshmem.fence: earlier puts of this thread to a PE before later ones to it
  kAwaitPuts,  // nvshmem.quiet; cp.async.wait for asynchronous copies
};

enum class Arithmetic : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kAnd,
  kOr,
  kXor,
  kMin,
  kMax,
  kInc,
  kDec,
  kExch,
  kCas
};
enum class Compare : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

struct Operand {
  int reg = -1;  // an index into Thread::registers, or -1 for a constant
  std::int64_t constant = 0;
};

struct Instruction {
  Op op = Op::kMove;
  Arithmetic arithmetic = Arithmetic::kAdd;
  Compare compare = Compare::kEq;
  model::Scope scope = model::Scope::kCta;
  model::Proxy proxy = model::Proxy::kGeneric;
  bool strong = false, acquire = false, release = false, sc = false;
  bool blocking = false;  // a put: its source may be overwritten once it returns
  bool has_quorum = false;
  int destination = -1;  // register
  int address = -1;      // index into Program::addresses
  int source = -1;       // of a put: the address it reads, or -1 where `a` is the value
  int signal = -1;       // of a put: the address of its signal, or -1
  int target = -1;       // of a branch: index of an instruction
  Operand a, b, c;       // operands; of a barrier: id, resource, number of threads
  int line = 0;
};

struct Thread {
  int id = 0;  // the 0 of P0
  model::Place place;
  std::vector<std::string> registers;
  std::vector<std::int64_t> initial;  // by register
  std::vector<Instruction> code;
  int register_of(const std::string& name) const;  // -1: no such register
};

struct Location {
  std::string name;
  std::int64_t initial = 0;
  int pe = 0;
};

struct Address {
  std::string name;
  int location = 0;
};

// What a condition compares: a constant, a location's final value, or a register's.
struct Term {
  enum class Kind : std::uint8_t { kConstant, kLocation, kRegister } kind = Kind::kConstant;
  std::int64_t constant = 0;
  int observed = -1;  // index into Program::observed, for the other two
};

struct Condition {
  enum class Kind : std::uint8_t { kTrue, kAnd, kOr, kNot, kCompare } kind = Kind::kTrue;
  Compare compare = Compare::kEq;
  Term left, right;
  std::vector<Condition> parts;
};

// A part of the final state that outcomes show: a register, or a location where thread is -1.
struct Observed {
  int thread = -1;  // index into Program::threads
  int index = 0;    // of a register or location
  std::string name;
};

enum class Quantifier : std::uint8_t { kExists, kNotExists, kForall };

struct Program {
  std::string name;
  std::string file;
  std::vector<Thread> threads;
  std::vector<Location> locations;
  std::vector<Address> addresses;
  std::vector<Observed> observed;
  bool has_condition = false;
  Quantifier quantifier = Quantifier::kExists;
  Condition condition;
  Condition filter;  // final states that don't satisfy it are none; always true where the file has no filter

  int observe(int thread, int index);  // the index of that part, added where it is new
};

// Errors name `file` and the line.
Result<Program> parse_litmus(const std::string& text, const std::string& file);

// Whether `condition` holds in a final state, given the values of Program::observed in their order.
bool holds(const Condition& condition, const std::vector<std::int64_t>& values);
bool compare(Compare how, std::int64_t a, std::int64_t b);
// Two's complement, 64 bits; a division by zero gives 0.
std::int64_t apply(Arithmetic how, std::int64_t old, std::int64_t operand);

std::string to_string(Quantifier quantifier);

}  // namespace echolo::litmus
