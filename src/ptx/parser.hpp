// The parser's state; its member functions are spread over parser.cpp (module scope), declarations.cpp,
// body.cpp, operands.cpp, expressions.cpp and debug_info.cpp. Nothing here is for users of the room: they
// call parse().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ptx/forms.hpp"
#include "ptx/lexer.hpp"
#include "ptx/modifiers.hpp"
#include "ptx/module.hpp"
#include "ptx/scopes.hpp"

namespace echolo::ptx {

// Limits that no compiler's output comes near; they bound the memory that a hostile text can ask for.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
inline constexpr std::int64_t kMaxRegistersPerModule = std::int64_t{1} << 22;
inline constexpr std::size_t kMaxBlockDepth = 256;
inline constexpr std::size_t kMaxVectorElements = 512;
inline constexpr std::size_t kMaxBranchTargets = std::size_t{1} << 22;
inline constexpr std::size_t kMaxParameters = 8192;
inline constexpr std::size_t kMaxCopied = std::size_t{1}
                                          << 20;  // instructions of aliases; parameters of .calltargets
inline constexpr int kMaxExpressionDepth = 64;
inline constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kMaxPaddingBytes = std::uint64_t{1} << 26;
inline constexpr std::size_t kMaxNameBytes = std::size_t{1} << 26;
// See Parser::renumber_variables.
inline constexpr std::int32_t kLocalVariable = std::int32_t{1} << 28;

class Parser {
 public:
  Parser(std::string text, std::string name_for_errors);
  Result<Module> run();

 private:
  // A constant: an integer or the bits of a double (or of a float, for a lone 0f literal).
  struct Constant {
    std::int64_t value = 0;
    bool is_float = false;
    std::uint8_t float_bits = 0;
  };
  struct Linkage {
    bool is_extern = false;
    bool is_visible = false;
  };

  // Functions that parse return false after an error; error_ then holds it.
  bool fail(const Token& at, std::string message, std::string hint = {});
  bool fail_line(std::int32_t line, std::string message, std::string hint = {});
  bool unexpected(const Token& token, std::string_view wanted);
  bool expect(char c);
  bool accept(char c);
  bool accept_dotted(std::string_view word);
  bool expect_name(std::string_view& name, std::string_view what);
  static std::string shown(const Token& token);

  // parser.cpp: module scope
  bool parse_module();
  bool parse_module_directive(const Token& token);
  bool parse_version();
  bool parse_target();
  bool parse_function(bool is_entry, Linkage linkage);
  bool parse_function_directives(Function& function);
  bool parse_triple(std::uint32_t (&out)[3]);
  bool parse_alias();
  bool parse_attribute(bool& is_managed);
  bool finish_aliases();
  void renumber_variables();

  // declarations.cpp
  bool parse_parameters(std::vector<Variable>& into);
  bool parse_parameter(Variable& variable);
  bool parse_declaration(Space space, Linkage linkage, bool in_function);
  bool parse_variable_head(Variable& variable, std::uint32_t& vector);
  bool parse_declarator(const Token& at, Variable& variable, std::uint32_t vector);
  bool declare_variable(const Token& at, std::string_view name, Variable variable, bool in_function);
  bool parse_registers();
  bool declare_registers(const Token& at, std::string_view name, Type type, std::uint64_t count, bool is_set);
  bool declare_vector_register(const Token& at, std::string_view name, Type type, std::uint32_t vector);
  std::int32_t add_register(std::string name, Type type);
  bool declare_parameter_names(const Token& at);
  bool parse_prototype_shape(Prototype& prototype);

  // initialisers.cpp
  bool parse_initialiser(Variable& variable);
  bool parse_initialiser_list(Variable& variable, std::size_t level, std::uint64_t begin);
  bool parse_initialiser_element(Variable& variable, std::uint64_t offset);
  bool parse_symbol_reference(Variable& variable, std::uint64_t offset, std::optional<std::uint64_t> mask);
  bool add_masked(const Token& at, Variable& variable, std::uint64_t offset, std::uint64_t mask,
                  Variable::Relocation relocation, std::string_view name);
  bool put_bits(const Token& at, Variable& variable, std::uint64_t offset, std::uint64_t bits,
                std::uint64_t n_bytes);
  bool resolve_relocations();

  // body.cpp
  bool parse_body(std::size_t function_index);
  bool parse_statement(const Token& token);
  bool parse_body_directive(const Token& token);
  bool parse_labelled(const Token& label);
  bool parse_instruction(const Token& first, std::int32_t guard, bool guard_negated);
  bool parse_opcode(const Token& first, CompiledOpcode& compiled);
  bool parse_guard(std::int32_t& guard, bool& negated);
  bool parse_call(Instruction& instruction);
  bool parse_call_list(std::vector<Operand>& list);
  bool check_call(const Token& at, const Instruction& instruction);
  bool close_scope();
  std::optional<Symbol> find_symbol(std::string_view name) const;

  // operands.cpp
  bool parse_operand(const Form& form, Operand& operand, int depth);
  bool parse_named_operand(const Form& form, Operand& operand, int depth);
  bool parse_address(const Form& form, Operand& operand, int depth);
  bool parse_vector(const Form& form, Operand& operand, int depth);
  bool parse_register_component(const Token& name, const Symbol& symbol, Operand& operand);
  bool parse_special(const Token& name, Operand& operand);
  bool parse_optional_offset(std::int64_t& offset);

  // expressions.cpp: PTX ISA section 4.5.3 "Constant Expressions"
  bool parse_constant(Constant& constant);
  bool parse_conditional(Constant& constant, int depth);
  bool parse_binary(Constant& constant, int lowest, int depth);
  bool parse_unary(Constant& constant, int depth);
  bool parse_primary(Constant& constant, int depth);
  bool apply_binary(const Token& at, int op, Constant& left, const Constant& right);
  bool parse_unsigned(std::uint64_t& value, std::uint64_t most, std::string_view what);

  // debug_info.cpp
  bool parse_file_directive();
  bool parse_loc();
  bool parse_section();
  bool parse_debug_strings();
  bool skip_section();
  std::int32_t name_index(std::string_view label, std::uint64_t offset);
  std::int32_t position_at(const Position& position);
  bool resolve_debug_names();
  std::string source_of(std::int32_t position) const;

  Module module_;
  std::string file_name_;
  Lexer lexer_;
  Error error_;

  std::unordered_map<std::string_view, Symbol> globals_;  // index of a variable: into Module::variables

  // Addresses in initialisers, whose names may be declared later.
  struct PendingRelocation {
    std::int32_t function = -1;  // whose variable it is; -1: a module variable
    std::size_t variable = 0;
    std::size_t relocation = 0;
    std::string_view name;
    std::int32_t line = 0;
  };
  std::vector<PendingRelocation> pending_relocations_;
  std::vector<std::pair<std::string_view, std::int32_t>> relocation_names_;  // of the variable being parsed
  int n_masked_ = 0;                       // bytes seen of an address that is written byte by byte
  std::vector<std::uint64_t> dimensions_;  // of the variable being parsed, outermost first; 0: unsized
  std::uint64_t n_padding_ = 0;            // zero bytes that initialisers left out, in all
  std::vector<std::pair<std::size_t, std::pair<std::string_view, std::int32_t>>>
      aliases_;  // alias, aliasee, line

  // The function being parsed.
  Function* function_ = nullptr;
  std::int32_t function_index_ = -1;
  std::int32_t enclosing_name_ = -1;  // its own name, in Module::function_names
  std::vector<Block> scopes_;
  std::unordered_set<std::string> names_;  // keeps what scopes refer to and the text does not hold
  std::int32_t position_ = -1;
  std::vector<std::string_view> opcode_words_;
  std::unordered_map<std::string_view, CompiledOpcode>
      opcodes_;                          // by text; one a distinct opcode of the module
  std::int64_t n_registers_ = 0;         // of all functions
  std::size_t n_branch_targets_ = 0;     // of all brx.idx
  std::size_t n_target_parameters_ = 0;  // copied from functions of .calltargets
  // Labels among the operands of the instruction being parsed.
  struct PendingLabel {
    std::string_view name;
    std::int32_t operand = 0;
  };
  std::vector<PendingLabel> pending_labels_;
  std::int32_t operand_index_ = 0;

  struct PendingName {
    std::string_view label;
    std::uint64_t offset = 0;
    std::int32_t line = 0;  // 0: the name is known already
  };
  std::vector<PendingName> pending_names_;  // parallel to Module::function_names
  std::unordered_map<std::string, std::int32_t> name_indices_;
  std::unordered_map<std::uint64_t, std::int32_t>
      latest_position_;  // by file, line and column, of this function
  std::unordered_map<std::string_view, std::size_t> string_labels_;  // into debug_strings_
  std::string debug_strings_;
};

}  // namespace echolo::ptx
