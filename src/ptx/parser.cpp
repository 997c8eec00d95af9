// Module scope: directives, functions and their attributes.
#include "ptx/parser.hpp"

#include <algorithm>
#include <memory>

#include "base/text.hpp"

namespace echolo::ptx {

Parser::Parser(std::string text, std::string name_for_errors)
    : file_name_(std::move(name_for_errors)), lexer_(std::string_view()) {
  module_.text = std::make_unique<const std::string>(std::move(text));
  module_.files.emplace_back();
}

bool Parser::fail(const Token& at, std::string message, std::string hint) {
  fail_line(at.line, std::move(message), std::move(hint));
  error_.column = lexer_.column(at);
  return false;
}

bool Parser::fail_line(std::int32_t line, std::string message, std::string hint) {
  const std::string source = source_of(position_);
  if (!source.empty()) message += " (compiled from " + source + ")";
  error_ = input_error(file_name_, line, std::move(message), std::move(hint));
  return false;
}

std::string Parser::shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kDotted:
      return "'." + printable(token.text) + "'";
    case TokenKind::kString:
      return "a string";
    default:
      return "'" + printable(token.text.substr(0, 80)) + "'";
  }
}

bool Parser::unexpected(const Token& token, std::string_view wanted) {
  if (token.kind == TokenKind::kInvalid && token.text.starts_with("/*"))
    return fail(token, "this comment is never closed");
  if (token.kind == TokenKind::kInvalid && token.text.starts_with("\""))
    return fail(token, "this string is never closed");
  return fail(token, "expected " + std::string(wanted) + ", found " + shown(token));
}

bool Parser::accept(char c) {
  if (!lexer_.peek().is(c)) return false;
  lexer_.next();
  return true;
}

bool Parser::accept_dotted(std::string_view word) {
  if (!lexer_.peek().is_dotted(word)) return false;
  lexer_.next();
  return true;
}

bool Parser::expect(char c) {
  if (accept(c)) return true;
  return unexpected(lexer_.peek(), std::string("'") + c + "'");
}

bool Parser::expect_name(std::string_view& name, std::string_view what) {
  const Token token = lexer_.peek();
  if (token.kind != TokenKind::kIdent) return unexpected(token, what);
  name = lexer_.next().text;
  return true;
}

Result<Module> Parser::run() {
  if (module_.text->size() > kMaxTextBytes)
    return input_error(file_name_, 0, "this PTX text is larger than 1 GiB");
  std::string_view text = *module_.text;
  // A fatbin's text may end in zero bytes.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  lexer_ = Lexer(text);
  if (!parse_module() || !resolve_debug_names() || !resolve_relocations() || !finish_aliases())
    return std::move(error_);
  renumber_variables();
  return std::move(module_);
}

bool Parser::parse_module() {
  while (lexer_.peek().kind != TokenKind::kEnd) {
    const Token token = lexer_.next();
    if (token.is(';')) continue;
    if (token.kind != TokenKind::kDotted) return unexpected(token, "a directive, such as .visible or .entry");
    if (module_.version_major == 0 && token.text != "version") {
      return fail(token, "the text must begin with .version, found " + shown(token));
    }
    if (!parse_module_directive(token)) return false;
  }
  if (module_.version_major == 0)
    return fail(lexer_.peek(), "the text must begin with .version, but it is empty");
  return true;
}

bool Parser::parse_module_directive(const Token& first) {
  Token token = first;
  if (token.text == "version") return parse_version();
  if (token.text == "target") return parse_target();
  if (token.text == "address_size") {
    std::uint64_t bits = 0;
    if (!parse_unsigned(bits, 64, "the address size")) return false;
    return bits == 64 || fail(token, "only .address_size 64 is supported");
  }
  if (token.text == "file") return parse_file_directive();
  if (token.text == "loc") return parse_loc();
  if (token.text == "section") return parse_section();
  if (token.text == "alias") return parse_alias();
  if (token.text == "pragma") {
    const Token text = lexer_.next();
    return text.kind == TokenKind::kString ? expect(';') : unexpected(text, "the pragma's string");
  }

  Linkage linkage;
  while (token.text == "visible" || token.text == "extern" || token.text == "weak" ||
         token.text == "common") {
    (token.text == "extern" ? linkage.is_extern : linkage.is_visible) = true;
    token = lexer_.next();
    if (token.kind != TokenKind::kDotted) return unexpected(token, "a declaration");
  }
  if (token.text == "func") return parse_function(false, linkage);
  if (token.text == "entry") return parse_function(true, linkage);
  static const std::unordered_map<std::string_view, Space> spaces = {
      {"global", Space::kGlobal}, {"const", Space::kConst}, {"shared", Space::kShared},
      {"local", Space::kLocal},   {"tex", Space::kTexture}, {"shared::cta", Space::kShared}};
  const auto space = spaces.find(token.text);
  if (space != spaces.end()) return parse_declaration(space->second, linkage, false);
  return fail(token, shown(token) + " is no directive of module scope");
}

bool Parser::parse_version() {
  const Token token = lexer_.next();
  const std::size_t dot = token.text.find('.');
  const auto part = [&](std::string_view digits) {
    const std::optional<Literal> literal = parse_literal(digits);
    return literal && !literal->is_float && literal->bits < 1000 ? static_cast<int>(literal->bits) : -1;
  };
  if (token.kind == TokenKind::kNumber && dot != std::string_view::npos) {
    module_.version_major = part(token.text.substr(0, dot));
    module_.version_minor = part(token.text.substr(dot + 1));
    if (module_.version_major > 0 && module_.version_minor >= 0) return true;
  }
  return unexpected(token, "a version, such as 9.2");
}

bool Parser::parse_target() {
  do {
    std::string_view name;
    if (!expect_name(name, "a target, such as sm_90a")) return false;
    if (module_.target.empty()) module_.target = name;
  } while (accept(','));
  return true;
}

bool Parser::parse_attribute(bool& is_managed) {
  if (!expect('(')) return false;
  do {
    const Token token = lexer_.next();
    if (token.is_dotted("managed")) {
      is_managed = true;
    } else if (token.is_dotted("unified")) {
      std::uint64_t uuid = 0;
      if (!expect('(') || !parse_unsigned(uuid, ~std::uint64_t{0}, "half of a UUID") || !expect(',') ||
          !parse_unsigned(uuid, ~std::uint64_t{0}, "half of a UUID") || !expect(')')) {
        return false;
      }
    } else {
      return unexpected(token, ".managed or .unified");
    }
  } while (accept(','));
  return expect(')');
}

bool Parser::parse_function(bool is_entry, Linkage linkage) {
  position_ = -1;
  latest_position_.clear();
  Function parsed;
  parsed.is_entry = is_entry;
  parsed.is_visible = linkage.is_visible;
  bool unused_managed = false;
  while (accept_dotted("attribute")) {
    if (!parse_attribute(unused_managed)) return false;
  }
  if (lexer_.peek().is('(') && !parse_parameters(parsed.results)) return false;
  const Token name_token = lexer_.peek();
  std::string_view name;
  if (!expect_name(name, "the function's name")) return false;
  parsed.name = name;
  if (lexer_.peek().is('(') && !parse_parameters(parsed.parameters)) return false;
  if (!parse_function_directives(parsed)) return false;

  const auto [known, is_new] = globals_.try_emplace(
      name, Symbol{SymbolKind::kFunction, static_cast<std::int32_t>(module_.functions.size()), 1});
  if (!is_new && known->second.kind != SymbolKind::kFunction) {
    return fail(name_token, "'" + printable(name) + "' is declared as a variable before");
  }
  const auto index = static_cast<std::size_t>(known->second.index);
  if (is_new) {
    module_.functions.push_back(std::move(parsed));
  } else {
    Function& earlier = module_.functions[index];
    if (earlier.is_entry != is_entry)
      return fail(name_token, "'" + printable(name) + "' is declared both .entry and .func");
    if (lexer_.peek().is('{')) {
      if (earlier.is_defined) return fail(name_token, "'" + printable(name) + "' is defined twice");
      parsed.is_visible = parsed.is_visible || earlier.is_visible;
      earlier = std::move(parsed);
    }
  }
  if (!lexer_.peek().is('{')) return accept(';') || unexpected(lexer_.peek(), "'{' or ';'");
  if (linkage.is_extern) return fail(name_token, "'" + printable(name) + "' is .extern and has a body");
  return parse_body(index);
}

bool Parser::parse_triple(std::uint32_t (&out)[3]) {
  out[1] = out[2] = 1;
  for (std::uint32_t& dimension : out) {
    std::uint64_t value = 0;
    if (!parse_unsigned(value, 0x7fffffff, "a dimension")) return false;
    dimension = static_cast<std::uint32_t>(value);
    if (!accept(',')) break;
  }
  return true;
}

bool Parser::parse_function_directives(Function& function) {
  const auto number = [&](std::uint32_t& out) {
    std::uint64_t value = 0;
    if (!parse_unsigned(value, 0xffffffff, "a count")) return false;
    out = static_cast<std::uint32_t>(value);
    return true;
  };
  std::uint32_t unused = 0;
  while (lexer_.peek().kind == TokenKind::kDotted) {
    const Token token = lexer_.next();
    bool good = true;
    if (token.text == "maxntid") {
      good = parse_triple(function.max_threads);
    } else if (token.text == "reqntid") {
      good = parse_triple(function.required_threads);
    } else if (token.text == "reqnctapercluster") {
      good = parse_triple(function.cluster);
    } else if (token.text == "minnctapersm") {
      good = number(function.min_blocks_per_sm);
    } else if (token.text == "maxnreg") {
      good = number(function.max_registers);
    } else if (token.text == "maxnctapersm" || token.text == "maxclusterrank" ||
               token.text == "abi_preserve" || token.text == "abi_preserve_control") {
      good = number(unused);
    } else if (token.text == "explicitcluster") {
      function.explicit_cluster = true;
    } else if (token.text == "noreturn") {
      function.no_return = true;
    } else if (token.text == "pragma") {
      const Token text = lexer_.next();
      good = text.kind == TokenKind::kString ? expect(';') : unexpected(text, "the pragma's string");
    } else if (token.text == "attribute") {
      bool unused_managed = false;
      good = parse_attribute(unused_managed);
    } else if (token.text != "blocksareclusters") {
      return fail(token, shown(token) + " is no directive of a function");
    }
    if (!good) return false;
  }
  return true;
}

bool Parser::parse_alias() {
  const Token at = lexer_.peek();
  std::string_view alias, aliasee;
  if (!expect_name(alias, "the alias") || !expect(',') ||
      !expect_name(aliasee, "the function it stands for") || !expect(';')) {
    return false;
  }
  const auto found = globals_.find(alias);
  if (found == globals_.end() || found->second.kind != SymbolKind::kFunction) {
    return fail(at, "'" + printable(alias) + "' must be declared as a function before .alias");
  }
  aliases_.push_back({static_cast<std::size_t>(found->second.index), {aliasee, at.line}});
  return true;
}

// An alias is a second copy of the function under its own name.
bool Parser::finish_aliases() {
  std::size_t n_copied = 0;
  for (const auto& [index, target] : aliases_) {
    const auto& [aliasee, line] = target;
    const auto found = globals_.find(aliasee);
    const bool is_function = found != globals_.end() && found->second.kind == SymbolKind::kFunction;
    if (!is_function || !module_.functions[static_cast<std::size_t>(found->second.index)].is_defined) {
      return fail_line(line,
                       "'" + printable(aliasee) + "' of .alias is no function that this module defines");
    }
    Function& alias = module_.functions[index];
    if (alias.is_defined) return fail_line(line, "'" + printable(alias.name) + "' has a body and an alias");
    const Function& target_function = module_.functions[static_cast<std::size_t>(found->second.index)];
    n_copied += target_function.body.size() + target_function.registers.size();
    if (n_copied > kMaxCopied) return fail_line(line, "the aliases of this module stand for too much code");
    Function copy = target_function;
    copy.name = alias.name;
    copy.is_visible = copy.is_visible || alias.is_visible;
    alias = std::move(copy);
  }
  return true;
}

// While bodies are parsed, variables of the function count from kLocalVariable on, as module variables may
// still come.
void Parser::renumber_variables() {
  const auto n_module = static_cast<std::int32_t>(module_.variables.size());
  const auto renumber = [n_module](Operand& operand) {
    if (operand.variable >= kLocalVariable) operand.variable += n_module - kLocalVariable;
  };
  const auto renumber_all = [&](std::vector<Operand>& operands) {
    for (Operand& operand : operands) {
      renumber(operand);
      for (Operand& element : operand.elements) {
        renumber(element);
        for (Operand& inner : element.elements) renumber(inner);
      }
    }
  };
  for (Function& function : module_.functions) {
    for (Instruction& instruction : function.body) {
      renumber_all(instruction.operands);
      renumber_all(instruction.call_results);
      renumber_all(instruction.call_arguments);
    }
  }
}

std::string_view mnemonic(Opcode op) {
  static constexpr std::string_view kNames[] = {
#define ECHOLO_PTX_OPCODE(enumerator, text) text,
#include "ptx/opcodes.def"
#undef ECHOLO_PTX_OPCODE
  };
  return kNames[static_cast<std::size_t>(op)];
}

const Function* Module::find_function(std::string_view name) const {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

const Variable& Module::variable(const Function& function, std::int32_t index) const {
  auto at = static_cast<std::size_t>(index);
  for (const std::vector<Variable>* group : {&variables, &function.parameters, &function.results}) {
    if (at < group->size()) return (*group)[at];
    at -= group->size();
  }
  return function.variables.at(at);
}

Result<Module> parse(std::string text, const std::string& name_for_errors) {
  return Parser(std::move(text), name_for_errors).run();
}

}  // namespace echolo::ptx
