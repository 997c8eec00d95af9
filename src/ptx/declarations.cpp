// Declarations of variables, parameters and registers (PTX ISA sections 5.4 and 7.1).
#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "ptx/parser.hpp"

namespace echolo::ptx {
namespace {

std::optional<Type> find_type(std::string_view word) {
  static const std::unordered_map<std::string_view, Type> types = [] {
    std::unordered_map<std::string_view, Type> map;
    for (int i = 1; i <= static_cast<int>(kLastType); ++i) {
      map.emplace(name_of(static_cast<Type>(i)), static_cast<Type>(i));
    }
    return map;
  }();
  const auto found = types.find(word);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t vector_length(std::string_view word) {
  return word == "v2" ? 2 : word == "v4" ? 4 : word == "v8" ? 8 : 0;
}

}  // namespace

// Everything between the state space and the name: .align N, .attribute(...), .ptr ..., .v4, the type; in any
// order.
bool Parser::parse_variable_head(Variable& variable, std::uint32_t& vector) {
  vector = 1;
  bool is_pointer = false;
  bool has_type = false;
  std::uint64_t align = 0;
  while (lexer_.peek().kind == TokenKind::kDotted) {
    const Token token = lexer_.next();
    if (token.text == "align") {
      std::uint64_t value = 0;
      if (!parse_unsigned(value, 1U << 20, "the alignment")) return false;
      if (!std::has_single_bit(value)) return fail(token, "an alignment must be a power of two");
      // After .ptr it speaks of what the pointer points to.
      if (!is_pointer) align = value;
    } else if (token.text == "attribute") {
      if (!parse_attribute(variable.is_managed)) return false;
    } else if (token.text == "ptr") {
      is_pointer = true;
    } else if (is_pointer && (token.text == "global" || token.text == "const" || token.text == "local" ||
                              token.text == "shared" || token.text == "generic")) {
      continue;
    } else if (vector_length(token.text) != 0) {
      vector = vector_length(token.text);
    } else if (const std::optional<Type> type = find_type(token.text)) {
      if (has_type) return fail(token, "a declaration has one type");
      variable.type = *type;
      has_type = true;
    } else if (token.text == "texref" || token.text == "samplerref" || token.text == "surfref") {
      variable.type = Type::kB64;  // opaque handles
      has_type = true;
    } else {
      return fail(token, shown(token) + " is not known in a declaration");
    }
  }
  if (!has_type) return unexpected(lexer_.peek(), "a type, such as .b32");
  if (variable.space != Space::kReg && bits_of(variable.type) < 8) {
    return fail(lexer_.peek(), "a variable in memory cannot be ." + std::string(name_of(variable.type)));
  }
  variable.align = static_cast<std::uint32_t>(
      align != 0 ? align
                 : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes_of(variable.type)) * vector));
  return true;
}

// After the name: dimensions, from which follows the size.
bool Parser::parse_declarator(const Token& at, Variable& variable, std::uint32_t vector) {
  dimensions_.clear();
  while (accept('[')) {
    std::uint64_t length = 0;
    if (!lexer_.peek().is(']')) {
      Constant constant;
      if (!parse_constant(constant)) return false;
      if (constant.is_float || constant.value < 0)
        return fail(at, "an array's length must be a non-negative integer");
      length = static_cast<std::uint64_t>(constant.value);
    } else if (!dimensions_.empty()) {
      return fail(at, "only an array's first dimension may be left out");
    }
    if (!expect(']')) return false;
    if (dimensions_.size() >= 16) return fail(at, "an array has at most 16 dimensions here");
    dimensions_.push_back(length);
  }
  if (vector > 1) dimensions_.push_back(vector);
  std::uint64_t size = static_cast<std::uint64_t>(bytes_of(variable.type));
  for (const std::uint64_t length : dimensions_) {
    if (length != 0 && size > kMaxVariableBytes / length) {
      return fail(at, "'" + printable(variable.name) + "' is larger than 1 TiB");
    }
    size *= length;
  }
  variable.size = size;
  return true;
}

bool Parser::parse_parameter(Variable& variable) {
  const Token space = lexer_.next();
  if (space.is_dotted("reg")) {
    variable.space = Space::kReg;
  } else if (space.is_dotted("param")) {
    variable.space = Space::kParam;
  } else {
    return unexpected(space, ".param or .reg");
  }
  std::uint32_t vector = 1;
  if (!parse_variable_head(variable, vector)) return false;
  const Token at = lexer_.peek();
  std::string_view name;
  if (!expect_name(name, "the parameter's name")) return false;
  variable.name = name;
  return parse_declarator(at, variable, vector);
}

bool Parser::parse_parameters(std::vector<Variable>& into) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    if (into.size() >= kMaxParameters) {
      return fail(lexer_.peek(), "a function has at most " + with_commas(kMaxParameters) + " parameters");
    }
    if (!parse_parameter(into.emplace_back())) return false;
  } while (accept(','));
  return expect(')');
}

// .callprototype (results) _ (parameters) [.noreturn ...]
bool Parser::parse_prototype_shape(Prototype& prototype) {
  if (lexer_.peek().is('(') && !parse_parameters(prototype.results)) return false;
  std::string_view name;
  if (!expect_name(name, "_")) return false;
  if (lexer_.peek().is('(') && !parse_parameters(prototype.parameters)) return false;
  Function attributes;
  return parse_function_directives(attributes);
}

bool Parser::parse_declaration(Space space, Linkage linkage, bool in_function) {
  Variable head;
  head.space = space;
  head.is_extern = linkage.is_extern;
  head.is_visible = linkage.is_visible;
  head.position = position_;
  std::uint32_t vector = 1;
  if (!parse_variable_head(head, vector)) return false;
  do {
    const Token at = lexer_.peek();
    std::string_view name;
    if (!expect_name(name, "the variable's name")) return false;
    Variable variable = head;
    variable.name = name;
    relocation_names_.clear();
    if (!parse_declarator(at, variable, vector)) return false;
    if (accept('=') && !parse_initialiser(variable)) return false;
    if (!declare_variable(at, name, std::move(variable), in_function)) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::declare_variable(const Token& at, std::string_view name, Variable variable, bool in_function) {
  std::vector<Variable>& into = in_function ? function_->variables : module_.variables;
  const std::size_t n_local = in_function ? function_->parameters.size() + function_->results.size() : 0;
  if (into.size() + n_local >= static_cast<std::size_t>(kLocalVariable))
    return fail(at, "too many variables");
  std::size_t index = into.size();
  if (in_function) {
    const auto number = static_cast<std::int32_t>(n_local + index) + kLocalVariable;
    if (!scopes_.back().declare(name, {SymbolKind::kVariable, number, 1})) {
      return fail(at, "'" + printable(name) + "' is declared twice in one block");
    }
    into.push_back(std::move(variable));
  } else {
    const auto [known, is_new] =
        globals_.try_emplace(name, Symbol{SymbolKind::kVariable, static_cast<std::int32_t>(index), 1});
    if (is_new) {
      into.push_back(std::move(variable));
    } else {
      // A declaration and its definition are one variable.
      if (known->second.kind != SymbolKind::kVariable) {
        return fail(at, "'" + printable(name) + "' is declared as a function before");
      }
      index = static_cast<std::size_t>(known->second.index);
      if (!into[index].is_extern && !variable.is_extern)
        return fail(at, "'" + printable(name) + "' is defined twice");
      if (variable.is_extern) return true;
      into[index] = std::move(variable);
    }
  }
  for (std::size_t i = 0; i < relocation_names_.size(); ++i) {
    const auto& [symbol, line] = relocation_names_[i];
    pending_relocations_.push_back({in_function ? function_index_ : -1, index, i, symbol, line});
  }
  return true;
}

std::int32_t Parser::add_register(std::string name, Type type) {
  function_->registers.push_back({std::move(name), type});
  ++n_registers_;
  return static_cast<std::int32_t>(function_->registers.size()) - 1;
}

// .reg .b32 %r<20>, %x;
bool Parser::parse_registers() {
  Variable head;
  head.space = Space::kReg;
  std::uint32_t vector = 1;
  if (!parse_variable_head(head, vector)) return false;
  do {
    const Token at = lexer_.peek();
    std::string_view name;
    if (!expect_name(name, "the register's name")) return false;
    std::uint64_t count = 1;
    const bool is_set = accept('<');
    if (is_set && (!parse_unsigned(count, kMaxRegistersPerModule, "the number of registers") || !expect('>')))
      return false;
    if (vector > 1 && is_set) return fail(at, "a set of vector registers is not supported");
    if (!(vector > 1 ? declare_vector_register(at, name, head.type, vector)
                     : declare_registers(at, name, head.type, count, is_set))) {
      return false;
    }
  } while (accept(','));
  return expect(';');
}

bool Parser::declare_registers(const Token& at, std::string_view name, Type type, std::uint64_t count,
                               bool is_set) {
  if (n_registers_ + static_cast<std::int64_t>(count) > kMaxRegistersPerModule) {
    return fail(at, "this module declares more than " + with_commas(kMaxRegistersPerModule) + " registers");
  }
  const auto first = static_cast<std::int32_t>(function_->registers.size());
  const bool is_new = is_set ? scopes_.back().declare_set(name, first, static_cast<std::int32_t>(count))
                             : scopes_.back().declare(name, {SymbolKind::kRegister, first, 1});
  if (!is_new) return fail(at, "'" + printable(name) + "' is declared twice in one block");
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string full(name);
    if (is_set) full += std::to_string(i);
    add_register(std::move(full), type);
  }
  return true;
}

// .reg .v4 .f32 v: four registers, v.x to v.w.
bool Parser::declare_vector_register(const Token& at, std::string_view name, Type type,
                                     std::uint32_t vector) {
  const auto first = static_cast<std::int32_t>(function_->registers.size());
  if (vector > 4) return fail(at, "a vector register has 2 or 4 elements");
  if (n_registers_ + vector > kMaxRegistersPerModule) return fail(at, "too many registers");
  const Symbol symbol{SymbolKind::kVectorRegister, first, static_cast<std::int32_t>(vector)};
  if (!scopes_.back().declare(name, symbol)) {
    return fail(at, "'" + printable(name) + "' is declared twice in one block");
  }
  for (std::uint32_t i = 0; i < vector; ++i) add_register(std::string(name) + "." + "xyzw"[i], type);
  return true;
}

// Parameters and results take the first local indices; .reg ones are registers as well.
bool Parser::declare_parameter_names(const Token& at) {
  std::int32_t index = kLocalVariable;
  for (const std::vector<Variable>* group : {&function_->parameters, &function_->results}) {
    for (const Variable& variable : *group) {
      Symbol symbol{SymbolKind::kVariable, index++, 1};
      if (variable.space == Space::kReg) {
        symbol = {SymbolKind::kRegister, add_register(variable.name, variable.type), 1};
      }
      if (variable.name == "_") continue;
      const auto [name, is_new] = names_.insert(variable.name);
      if (!scopes_.back().declare(*name, symbol)) {
        return fail(at, "'" + printable(variable.name) + "' names two parameters");
      }
    }
  }
  return true;
}

}  // namespace echolo::ptx
