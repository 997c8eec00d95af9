// Function bodies: blocks, labels, instructions, calls.
#include <algorithm>

#include "base/text.hpp"
#include "ptx/parser.hpp"

namespace echolo::ptx {

std::optional<Symbol> Parser::find_symbol(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const std::optional<Symbol> symbol = scope->find(name)) return symbol;
  }
  const auto global = globals_.find(name);
  return global == globals_.end() ? std::nullopt : std::optional(global->second);
}

bool Parser::parse_body(std::size_t function_index) {
  const Token open = lexer_.next();
  function_ = &module_.functions[function_index];
  function_index_ = static_cast<std::int32_t>(function_index);
  enclosing_name_ = static_cast<std::int32_t>(module_.function_names.size());
  module_.function_names.push_back(function_->name);
  pending_names_.emplace_back();
  scopes_.clear();
  scopes_.emplace_back();
  if (!declare_parameter_names(open)) return false;
  while (!scopes_.empty()) {
    const Token token = lexer_.next();
    if (token.kind == TokenKind::kEnd) {
      return fail(token, "the body of '" + printable(function_->name) + "' is never closed");
    }
    if (!parse_statement(token)) return false;
  }
  function_->is_defined = true;
  function_ = nullptr;
  enclosing_name_ = -1;
  position_ = -1;
  return true;
}

bool Parser::parse_statement(const Token& token) {
  if (token.kind == TokenKind::kIdent) {
    return lexer_.peek().is(':') ? parse_labelled(token) : parse_instruction(token, -1, false);
  }
  if (token.kind == TokenKind::kDotted) return parse_body_directive(token);
  if (token.is(';')) return true;
  if (token.is('}')) return close_scope();
  if (token.is('{')) {
    if (scopes_.size() >= kMaxBlockDepth) return fail(token, "blocks are nested too deeply");
    scopes_.emplace_back();
    return true;
  }
  if (token.is('@')) {
    std::int32_t guard = -1;
    bool negated = false;
    if (!parse_guard(guard, negated)) return false;
    const Token first = lexer_.next();
    if (first.kind != TokenKind::kIdent) return unexpected(first, "an instruction after the guard");
    return parse_instruction(first, guard, negated);
  }
  return unexpected(token, "an instruction");
}

bool Parser::parse_guard(std::int32_t& guard, bool& negated) {
  negated = accept('!');
  const Token at = lexer_.peek();
  std::string_view name;
  if (!expect_name(name, "a predicate register")) return false;
  const std::optional<Symbol> symbol = find_symbol(name);
  if (!symbol) return fail(at, "'" + printable(name) + "' is not declared");
  if (symbol->kind != SymbolKind::kRegister ||
      function_->registers[static_cast<std::size_t>(symbol->index)].type != Type::kPred) {
    return fail(at, "a guard must be a predicate register; '" + printable(name) + "' is none");
  }
  guard = symbol->index;
  return true;
}

bool Parser::parse_body_directive(const Token& token) {
  if (token.text == "loc") {
    if (!parse_loc()) return false;
    if (function_->position < 0) function_->position = position_;
    return true;
  }
  if (token.text == "reg") return parse_registers();
  if (token.text == "pragma") {
    const Token text = lexer_.next();
    return text.kind == TokenKind::kString ? expect(';') : unexpected(text, "the pragma's string");
  }
  if (token.text == "file") return parse_file_directive();
  static const std::unordered_map<std::string_view, Space> spaces = {
      {"param", Space::kParam}, {"local", Space::kLocal},   {"shared", Space::kShared},
      {"const", Space::kConst}, {"global", Space::kGlobal}, {"shared::cta", Space::kShared},
      {"tex", Space::kTexture}};
  Linkage linkage;
  Token word = token;
  while (word.text == "extern" || word.text == "visible" || word.text == "weak") {
    (word.text == "extern" ? linkage.is_extern : linkage.is_visible) = true;
    word = lexer_.next();
    if (word.kind != TokenKind::kDotted) return unexpected(word, "a declaration");
  }
  const auto space = spaces.find(word.text);
  if (space != spaces.end()) return parse_declaration(space->second, linkage, true);
  return fail(word, shown(word) + " is no directive of a function's body");
}

bool Parser::parse_labelled(const Token& label) {
  lexer_.next();  // ':'
  Block& scope = scopes_.back();
  if (accept_dotted("branchtargets")) {
    Block::Table table;
    table.line = label.line;
    do {
      if (!expect_name(table.names.emplace_back(), "a label")) return false;
    } while (accept(','));
    if (!scope.tables.try_emplace(label.text, std::move(table)).second) {
      return fail(label, "label '" + printable(label.text) + "' stands twice in one block");
    }
    return expect(';');
  }
  const bool is_prototype = lexer_.peek().is_dotted("callprototype");
  if (is_prototype || lexer_.peek().is_dotted("calltargets")) {
    lexer_.next();
    Prototype prototype;
    if (is_prototype && !parse_prototype_shape(prototype)) return false;
    if (!is_prototype) {
      bool first = true;
      do {
        const Token at = lexer_.peek();
        std::string_view name;
        if (!expect_name(name, "a function")) return false;
        const auto symbol = globals_.find(name);
        if (symbol == globals_.end() || symbol->second.kind != SymbolKind::kFunction) {
          return fail(at, "function '" + printable(name) + "' is not declared");
        }
        const Function& target = module_.functions[static_cast<std::size_t>(symbol->second.index)];
        if (first) prototype = {target.results, target.parameters};
        if (first) n_target_parameters_ += target.results.size() + target.parameters.size();
        if (n_target_parameters_ > kMaxCopied) return fail(at, "this module has too many .calltargets");
        first = false;
      } while (accept(','));
    }
    const auto index = static_cast<std::int32_t>(function_->prototypes.size());
    function_->prototypes.push_back(std::move(prototype));
    if (!scope.declare(label.text, {SymbolKind::kPrototype, index, 1})) {
      return fail(label, "'" + printable(label.text) + "' is declared twice in one block");
    }
    return expect(';');
  }
  const auto at = static_cast<std::int32_t>(function_->body.size());
  if (!scope.labels.try_emplace(label.text, at).second) {
    return fail(label, "label '" + printable(label.text) + "' stands twice in one block");
  }
  return true;
}

// Labels may be used before they stand; a block's uses are settled where it ends, first among its own labels,
// then among those of the blocks around it.
bool Parser::close_scope() {
  Block scope = std::move(scopes_.back());
  scopes_.pop_back();
  Block* outer = scopes_.empty() ? nullptr : &scopes_.back();
  for (std::size_t i = 0; i < scope.uses.size(); ++i) {
    const LabelUse use = scope.uses[i];
    Instruction& user = function_->body[static_cast<std::size_t>(use.instruction)];
    const auto table = use.operand >= 0 ? scope.tables.find(use.name) : scope.tables.end();
    if (table != scope.tables.end()) {
      if (user.op != Opcode::kBrx) {
        return fail_line(use.line, "'" + printable(use.name) + "' is a list of branch targets, not a label");
      }
      n_branch_targets_ += table->second.names.size();
      if (n_branch_targets_ > kMaxBranchTargets)
        return fail_line(use.line, "this module has too many branch targets");
      user.branch_targets.assign(table->second.names.size(), -1);
      for (std::size_t target = 0; target < table->second.names.size(); ++target) {
        scope.uses.push_back({table->second.names[target], table->second.line, use.instruction,
                              -1 - static_cast<std::int32_t>(target)});
      }
      continue;
    }
    const auto label = scope.labels.find(use.name);
    if (label == scope.labels.end()) {
      if (outer == nullptr)
        return fail_line(use.line, "label '" + printable(use.name) + "' stands nowhere in this function");
      outer->uses.push_back(use);
    } else if (use.operand < 0) {
      user.branch_targets[static_cast<std::size_t>(-1 - use.operand)] = label->second;
    } else if (user.op == Opcode::kBrx) {
      return fail_line(use.line, "'" + printable(use.name) + "' is no list of .branchtargets");
    } else {
      user.operands[static_cast<std::size_t>(use.operand)].label = label->second;
    }
  }
  return true;
}

bool Parser::parse_opcode(const Token& first, CompiledOpcode& compiled) {
  opcode_words_.clear();
  std::uint32_t end = first.end;
  while (lexer_.peek().kind == TokenKind::kDotted) {
    const Token word = lexer_.next();
    opcode_words_.push_back(word.text);
    end = word.end;
  }
  const std::string_view key = lexer_.text().substr(first.begin, end - first.begin);
  const auto known = opcodes_.find(key);
  if (known != opcodes_.end()) {
    compiled = known->second;
    return true;
  }
  FormError error;
  std::optional<CompiledOpcode> fresh = compile_opcode(first.text, opcode_words_, error);
  if (!fresh) return fail(first, std::move(error.message), std::move(error.hint));
  compiled = *fresh;
  opcodes_.emplace(key, std::move(*fresh));
  return true;
}

bool Parser::parse_instruction(const Token& first, std::int32_t guard, bool guard_negated) {
  CompiledOpcode compiled;
  if (!parse_opcode(first, compiled)) return false;
  Instruction& instruction = compiled.fields;
  const Form& form = *compiled.form;
  instruction.guard = guard;
  instruction.guard_negated = guard_negated;
  instruction.position = position_;
  instruction.ptx_line = first.line;

  if (instruction.op == Opcode::kCall) {
    if (!parse_call(instruction)) return false;
  } else {
    if (!lexer_.peek().is(';')) {
      do {
        operand_index_ = static_cast<std::int32_t>(instruction.operands.size());
        if (!parse_operand(form, instruction.operands.emplace_back(), 0)) return false;
      } while (accept(','));
    }
  }
  const Token semicolon = lexer_.peek();
  if (!expect(';')) return false;
  if (instruction.op != Opcode::kCall) {
    if (std::optional<FormError> error = check_operands(form, function_->registers, instruction)) {
      return fail(first, std::move(error->message), std::move(error->hint));
    }
  }
  instruction.text = trim(lexer_.text().substr(first.begin, semicolon.begin - first.begin));
  for (const PendingLabel& label : pending_labels_) {
    scopes_.back().uses.push_back(
        {label.name, first.line, static_cast<std::int32_t>(function_->body.size()), label.operand});
  }
  pending_labels_.clear();
  function_->body.push_back(std::move(instruction));
  return true;
}

bool Parser::parse_call_list(std::vector<Operand>& list) {
  static const Form arguments;
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    const Token at = lexer_.peek();
    Operand& operand = list.emplace_back();
    if (!parse_operand(arguments, operand, 0)) return false;
    const OperandKind kind = operand.kind;
    if (kind != OperandKind::kVariable && kind != OperandKind::kRegister && kind != OperandKind::kImmediate &&
        kind != OperandKind::kNone) {
      return fail(at, "a call takes .param variables, registers and immediates");
    }
  } while (accept(','));
  return expect(')');
}

// call{.uni} [(results),] callee [, (arguments)] [, prototype]
bool Parser::parse_call(Instruction& instruction) {
  if (lexer_.peek().is('(') && (!parse_call_list(instruction.call_results) || !expect(','))) return false;
  const Token at = lexer_.peek();
  std::string_view name;
  if (!expect_name(name, "the function to call")) return false;
  const std::optional<Symbol> callee = find_symbol(name);
  if (!callee) return fail(at, "function '" + printable(name) + "' is not declared");
  Operand& operand = instruction.operands.emplace_back();
  if (callee->kind == SymbolKind::kFunction) {
    operand.kind = OperandKind::kFunction;
    operand.function = callee->index;
  } else if (callee->kind == SymbolKind::kRegister) {
    operand.kind = OperandKind::kRegister;
    operand.reg = callee->index;
  } else {
    return fail(at, "'" + printable(name) + "' is neither a function nor a register");
  }
  bool has_arguments = false;
  while (accept(',')) {
    if (lexer_.peek().is('(') && !has_arguments) {
      has_arguments = true;
      if (!parse_call_list(instruction.call_arguments)) return false;
      continue;
    }
    const Token prototype_at = lexer_.peek();
    std::string_view prototype;
    if (!expect_name(prototype, "a call prototype")) return false;
    const std::optional<Symbol> symbol = find_symbol(prototype);
    if (!symbol || symbol->kind != SymbolKind::kPrototype) {
      return fail(prototype_at, "'" + printable(prototype) + "' is no .callprototype or .calltargets");
    }
    instruction.call_prototype = symbol->index;
  }
  if (operand.kind == OperandKind::kRegister && instruction.call_prototype < 0) {
    return fail(at, "an indirect call needs a .callprototype or .calltargets");
  }
  return check_call(at, instruction);
}

// As many arguments and results as the callee declares.
bool Parser::check_call(const Token& at, const Instruction& instruction) {
  const Operand& callee = instruction.operands[0];
  std::size_t n_results = 0, n_parameters = 0;
  bool variadic = false;
  const auto take = [&](const auto& shape) {
    n_results = shape.results.size();
    n_parameters = shape.parameters.size();
    variadic = n_parameters > 0 && shape.parameters.back().size == 0;
  };
  if (callee.kind == OperandKind::kFunction) {
    take(module_.functions[static_cast<std::size_t>(callee.function)]);
  } else {
    take(function_->prototypes[static_cast<std::size_t>(instruction.call_prototype)]);
  }
  if (instruction.call_results.size() != n_results) {
    return fail(at, "the callee has " + std::to_string(n_results) + " results, the call names " +
                        std::to_string(instruction.call_results.size()));
  }
  if (instruction.call_arguments.size() != n_parameters && !variadic) {
    return fail(at, "the callee takes " + std::to_string(n_parameters) + " arguments, the call passes " +
                        std::to_string(instruction.call_arguments.size()));
  }
  return true;
}

}  // namespace echolo::ptx
