// The instruction forms: which modifiers a mnemonic takes, which fields of Instruction they fill, and which
// operands follow. The table is forms.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/module.hpp"

namespace echolo::ptx {

// What went wrong with an instruction; the parser adds where.
struct FormError {
  std::string message;
  std::string hint;
};

struct OperandRule {
  char kind = 's';  // see forms.def
  bool optional = false;
};

// A compiled form.
struct Form {
  std::string_view prefix;
  std::vector<OperandRule> operands;
  std::size_t min_operands = 0;
  std::size_t max_operands = 0;  // without those of "*"
  bool more = false;             // "*"
  bool video = false;            // operands may have selectors (.b0), those of vmad a minus
  bool takes_label = false;      // an undeclared name among the operands is a label
};

// An instruction without operands, from its opcode text. `fields.text`, `guard`, positions and operands are
// unset.
struct CompiledOpcode {
  Instruction fields;
  const Form* form = nullptr;
};

std::optional<Opcode> find_opcode(std::string_view mnemonic);

// `modifiers` are the words after the mnemonic, without dots. On failure `error` says why.
std::optional<CompiledOpcode> compile_opcode(std::string_view mnemonic,
                                             std::span<const std::string_view> modifiers, FormError& error);

// Checks operands against the form and settles what depends on both (immediates of type f32, implied fields).
// `registers` are those of the function. Nothing where all is well.
std::optional<FormError> check_operands(const Form& form, std::span<const Register> registers,
                                        Instruction& instruction);

// Checks that registers have the size that the instruction's types ask for; the rest of check_operands.
std::optional<FormError> check_widths(std::span<const Register> registers, const Instruction& instruction);
// Checks that matrix fragments have as many registers as shape and types ask for; likewise a part of
// check_operands.
std::optional<FormError> check_fragments(std::span<const Register> registers, const Instruction& instruction);

}  // namespace echolo::ptx
