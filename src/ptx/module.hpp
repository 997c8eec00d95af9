// What the parser makes of PTX text: a Module of resolved functions. Names are resolved (registers, labels,
// variables and callees are indices), modifiers are typed fields, and every instruction knows its source
// line. The parser knows nothing of execution: a form it can express but the executor cannot run is refused
// by the executor at load.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ptx/types.hpp"

namespace echolo::ptx {

// The base mnemonic: the part before the first dot ("ld", "cvt", "mma", "mbarrier", "wgmma", "cp", "bar",
// ...). One enumerator a mnemonic: see opcodes.def, whose lines are ECHOLO_PTX_OPCODE(kLd, "ld").
enum class Opcode : std::uint16_t {
#define ECHOLO_PTX_OPCODE(enumerator, mnemonic) enumerator,
#include "ptx/opcodes.def"
#undef ECHOLO_PTX_OPCODE
};
std::string_view mnemonic(Opcode op);

// Special registers (PTX ISA section 10). Vector ones come with their component.
enum class SpecialReg : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kIsExplicitCluster,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kTotalSmemSize,
  kAggrSmemSize,
  kDynamicSmemSize,
  kReservedSmemBegin,
  kReservedSmemEnd,
  kReservedSmemCap,
  kReservedSmemOffset0,
  kReservedSmemOffset1,
  kCurrentGraphExec,
  kEnvreg,
  kPm,
};

struct Position {         // one place in a source file
  std::int32_t file = 0;  // index into Module::files; 0 is unknown
  std::int32_t line = 0;  // 1-based
  std::int32_t column = 0;
  std::int32_t function =
      -1;  // index into Module::function_names: the function the line belongs to, where known
  std::int32_t inlined_at =
      -1;  // index into Module::positions of the call it was inlined at; -1: not inlined
};

struct Register {
  std::string name;        // "%r12"
  Type type = Type::kB32;  // as declared
};

enum class OperandKind : std::uint8_t {
  kNone,       // "_" (a sink, or an unused operand)
  kRegister,   // reg
  kImmediate,  // value: bits of the literal; is_float says how it was written (0f/0d literals are stored as
               // f32/f64 bits)
  kSpecial,    // special register
  kVariable,   // the address of a variable, plus offset (mov.u64 %rd1, symbol+8)
  kFunction,   // the address of a function
  kLabel,      // index into Function::body
  kAddress,    // [base + offset], base a register, a variable, or nothing (absolute)
  kVector,     // {a, b, ...}: elements
  kPredicatePair,  // p|q of setp, shfl and others: elements[0] = p, elements[1] = q (either may be kNone)
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  bool negated = false;         // !p, where a predicate operand may be negated
  bool is_float = false;        // immediate written as a floating literal
  std::uint8_t float_bits = 0;  // 32 or 64 for 0f / 0d literals
  std::int32_t reg = -1;  // kRegister, or the base of kAddress (-1: none); index into Function::registers
  std::int32_t variable = -1;  // kVariable, or the base of kAddress: see Function::variable(); -1: none
  std::int32_t function = -1;  // kFunction: index into Module::functions
  std::int32_t label = -1;     // kLabel: index of the instruction that the label stands before
  SpecialReg special = SpecialReg::kTidX;
  std::int64_t value = 0;  // immediate bits, or the offset of kAddress / kVariable
  std::vector<Operand>
      elements;  // kVector, kPredicatePair; for tensor addresses [map, {c0, c1}] the coordinates
};

// Geometry and layout of mma, wmma, wgmma, ldmatrix, stmatrix, movmatrix.
struct MatrixShape {
  std::uint16_t m = 0, n = 0, k = 0;
  std::uint8_t count = 1;  // .x1 .x2 .x4
  bool trans = false;
  bool a_row = true, b_col = true;
  bool sparse = false;
};

struct Instruction {
  Opcode op{};
  // Guard: executes where register `guard` is true (false if guard_negated). -1: always.
  std::int32_t guard = -1;
  bool guard_negated = false;

  Type type = Type::kNone;   // the first type suffix: the result's in cvt, the operation's elsewhere
  Type type2 = Type::kNone;  // the second (cvt source, set/slct source, dp4a ...)
  Type types[4] = {};        // mma/wgmma/wmma: d, a, b, c as written
  Space space = Space::kGeneric;
  Space space2 =
      Space::kGeneric;  // the source's of cp.async and the like (dst.src); cvta's target is `space`
  Order order =
      Order::kWeak;  // ld, st, atom, red, fence; kWeak where nothing is written (atom/red/fence: see below)
  bool order_given =
      false;  // false: the default of the form (atom, red: relaxed; fence: acq_rel; barrier ...)
  Scope scope = Scope::kNone;  // kNone: none written (PTX's default for atom/red is gpu)
  Rounding rounding = Rounding::kDefault;
  Compare compare = Compare::kNone;
  BoolOp bool_op = BoolOp::kNone;
  MulMode mul_mode = MulMode::kNone;
  SubOp sub_op = SubOp::kNone;   // atom.add -> kAdd; shfl.sync.bfly -> kBfly; bar.sync -> kSync;
                                 // cp.async.wait_group -> kWaitGroup
  SubOp sub_op2 = SubOp::kNone;  // barrier.red.popc -> kPopc; shf.l.wrap -> kWrap
  std::uint8_t vector = 1;       // .v2 .v4 .v8
  MatrixShape shape;
  bool ftz = false, sat = false, relu = false, approx = false, full = false, noftz = false;
  bool to = false;       // cvta.to
  bool uniform = false;  // bra.uni, call.uni
  bool sync = false;     // .sync as in shfl.sync, mma.sync
  bool aligned = false;  // .aligned; bar.* implies it
  bool async = false;    // cp.async, st.async, red.async
  bool bulk = false, tensor = false, multicast = false, noinc = false, bytemask = false, transa = false,
       transb = false;
  bool non_coherent = false;                 // ld.global.nc
  bool nan_propagate = false;                // .NaN
  bool xorsign = false;                      // .xorsign.abs
  bool proxy = false;                        // fence.proxy.*
  bool carry_in = false, carry_out = false;  // addc / .cc
  std::uint8_t shift = 0;                    // prmt mode, shf mode, video: see `mode`
  std::string_view mode;  // a modifier with no field of its own (prmt .f4e, fence.proxy kind, vote mode,
                          // cp.async.ca|cg ...)
  std::vector<std::string_view>
      modifiers;  // all, in order, as written (".sync" without its dot); points into Module::text

  std::vector<Operand> operands;     // as written: destination(s) first
  std::uint8_t n_destinations = 0;   // how many leading operands are written (0: st, red, bar.sync, ...)
  bool destination_is_read = false;  // the destination is read too: the accumulators of wgmma.mma_async
  // call: return operands, callee (kFunction or kRegister) and arguments. Arguments and results are variables
  // (.param).
  std::vector<Operand> call_results;
  std::vector<Operand> call_arguments;
  std::int32_t call_prototype = -1;  // indirect calls: index into Function::prototypes
  // brx.idx: the table, as instruction indices.
  std::vector<std::int32_t> branch_targets;

  std::int32_t position = -1;  // index into Module::positions; -1: no .loc seen yet
  std::int32_t ptx_line = 0;   // 1-based line in the PTX text
  std::string_view text;  // the instruction as written, without guard and semicolon; points into Module::text
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;    // element type
  std::uint64_t size = 0;   // bytes in all; 0 for an unsized extern array (dynamic shared memory)
  std::uint32_t align = 1;  // bytes
  bool is_extern = false;
  bool is_visible = false;            // .visible / .weak / .common: may be looked up by name
  bool is_managed = false;            // .attribute(.managed)
  std::vector<std::uint8_t> initial;  // empty: none (globals are then zero); shorter than size: rest zero
  struct Relocation {                 // a pointer-sized slot of `initial` that holds a symbol's address
    std::uint64_t offset = 0;
    std::int32_t variable = -1;  // one of the two: a module variable,
    std::int32_t function = -1;  // or a function
    std::int64_t addend = 0;
    bool generic = false;  // generic(symbol)
  };
  std::vector<Relocation> relocations;
  std::int32_t position = -1;
};

struct Prototype {  // of a .callprototype or a function: shapes of its parameters
  std::vector<Variable> results;
  std::vector<Variable> parameters;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_defined = false;  // false: an extern declaration only
  bool is_visible = false;
  bool no_return = false;
  std::vector<Variable> results;  // .param (or .reg) results
  std::vector<Variable> parameters;
  std::vector<Register>
      registers;  // dense; parameterised sets (%r<20>) expanded; .reg parameters are registers too
  std::vector<Variable> variables;  // declared in the body: .param, .local, .shared (demoted), .const ...
  std::vector<Prototype> prototypes;
  std::vector<Instruction> body;                  // labels are gone; a label at the end points at body.size()
  std::uint32_t max_threads[3] = {0, 0, 0};       // .maxntid, 0: not given
  std::uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  std::uint32_t min_blocks_per_sm = 0;            // .minnctapersm
  std::uint32_t max_registers = 0;                // .maxnreg
  std::uint32_t cluster[3] = {0, 0, 0};           // .reqnctapercluster
  bool explicit_cluster = false;
  std::int32_t position = -1;
};

// Variables are addressed by one index a function sees: module variables are 0 .. variables.size()-1 of the
// module, then the function's parameters, results and own variables. See Module::variable.
struct Module {
  std::unique_ptr<const std::string> text;   // the PTX, kept: string_views point into it
  int version_major = 0, version_minor = 0;  // .version
  std::string target;                        // "sm_90a"
  std::vector<std::string> files;            // .file; index 0 is "" (unknown)
  std::vector<std::string>
      function_names;  // from .debug_str, of .loc function_name (demangled by whoever shows them)
  std::vector<Position> positions;
  std::vector<Variable> variables;  // module scope
  std::vector<Function> functions;

  const Function* find_function(std::string_view name) const;
  // Resolves an Operand::variable of `function`: module scope, then parameters, results, own variables.
  const Variable& variable(const Function& function, std::int32_t index) const;
  bool is_module_variable(std::int32_t index) const {
    return index < static_cast<std::int32_t>(variables.size());
  }
};

// Errors name `file` (as the caller calls the text), the PTX line, and, where .loc was seen, the source line
// in the message. Any construct that is not understood is an error, never skipped.
Result<Module> parse(std::string text, const std::string& name_for_errors);

}  // namespace echolo::ptx
