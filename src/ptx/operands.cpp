// Operands of instructions (PTX ISA section 6).
#include "base/text.hpp"
#include "ptx/parser.hpp"
#include "ptx/special_registers.hpp"

namespace echolo::ptx {

// Operand: register, p|q, !p, _, constant, special register, symbol[+offset], label, [address], {vector}.
bool Parser::parse_operand(const Form& form, Operand& operand, int depth) {
  const Token token = lexer_.peek();
  if (token.is('[')) return parse_address(form, operand, depth);
  if (token.is('{')) return parse_vector(form, operand, depth);
  if (token.kind == TokenKind::kIdent && token.text != "WARP_SZ")
    return parse_named_operand(form, operand, depth);
  if (token.is('!')) {
    lexer_.next();
    const Token name = lexer_.peek();
    if (name.kind != TokenKind::kIdent) return unexpected(name, "a predicate register after '!'");
    if (!parse_named_operand(form, operand, depth)) return false;
    const bool is_predicate = operand.kind == OperandKind::kRegister &&
                              function_->registers[static_cast<std::size_t>(operand.reg)].type == Type::kPred;
    if (!is_predicate) return fail(name, "only a predicate register may follow '!'");
    operand.negated = true;
    return true;
  }
  if (token.is('-') && form.prefix == "vmad") {
    lexer_.next();
    if (lexer_.peek().kind == TokenKind::kIdent) {
      if (!parse_named_operand(form, operand, depth)) return false;
      if (operand.kind != OperandKind::kRegister) return fail(token, "only a register may follow '-'");
      operand.negated = true;
      return true;
    }
    Constant constant;
    if (!parse_constant(constant)) return false;
    operand.kind = OperandKind::kImmediate;
    operand.value = -constant.value;
    return true;
  }
  if (token.kind != TokenKind::kNumber && !token.is('-') && !token.is('+') && !token.is('~') &&
      !token.is('(') && token.kind != TokenKind::kIdent) {
    return unexpected(token, "an operand");
  }
  Constant constant;
  if (!parse_constant(constant)) return false;
  operand.kind = OperandKind::kImmediate;
  operand.value = constant.value;
  operand.is_float = constant.is_float;
  operand.float_bits = constant.float_bits;
  return true;
}

bool Parser::parse_register_component(const Token& name, const Symbol& symbol, Operand& operand) {
  if (lexer_.peek().kind != TokenKind::kDotted) {
    operand.kind = OperandKind::kVector;
    for (std::int32_t i = 0; i < symbol.count; ++i) {
      Operand& element = operand.elements.emplace_back();
      element.kind = OperandKind::kRegister;
      element.reg = symbol.index + i;
    }
    return true;
  }
  const Token component = lexer_.next();
  static constexpr std::string_view kLetters = "xyzwrgba";
  const std::size_t at =
      component.text.size() == 1 ? kLetters.find(component.text[0]) : std::string_view::npos;
  if (at == std::string_view::npos || at % 4 >= static_cast<std::size_t>(symbol.count)) {
    return fail(component, shown(component) + " is no component of '" + printable(name.text) + "'");
  }
  operand.kind = OperandKind::kRegister;
  operand.reg = symbol.index + static_cast<std::int32_t>(at % 4);
  return true;
}

bool Parser::parse_special(const Token& name, Operand& operand) {
  std::string_view component;
  if (lexer_.peek().kind == TokenKind::kDotted) component = lexer_.next().text;
  // The fourth component of the vectors of three is always zero.
  if (component == "w" && find_special_register(name.text, "x")) {
    operand.kind = OperandKind::kImmediate;
    return true;
  }
  const std::optional<SpecialRegister> special = find_special_register(name.text, component);
  if (!special) {
    std::string full = printable(name.text);
    if (!component.empty()) full += "." + printable(component);
    return fail(name, "'" + full + "' is not declared, and no special register");
  }
  operand.kind = OperandKind::kSpecial;
  operand.special = special->reg;
  operand.value = special->number;
  return true;
}

bool Parser::parse_named_operand(const Form& form, Operand& operand, int depth) {
  const Token name = lexer_.next();
  if (name.text == "_") {
    operand.kind = OperandKind::kNone;
  } else if (form.takes_label && name.text[0] != '%') {
    operand.kind = OperandKind::kLabel;
    pending_labels_.push_back({name.text, operand_index_});
    return true;
  } else if (const std::optional<Symbol> symbol = find_symbol(name.text)) {
    switch (symbol->kind) {
      case SymbolKind::kRegister:
        operand.kind = OperandKind::kRegister;
        operand.reg = symbol->index;
        if (form.video && lexer_.peek().kind == TokenKind::kDotted) {
          // Kept in the value: its letters, the first in the lowest byte.
          const Token selector = lexer_.next();
          if (selector.text.size() > sizeof(operand.value))
            return fail(selector, shown(selector) + " is no selector of a video instruction");
          for (std::size_t i = 0; i < selector.text.size(); ++i)
            operand.value |= std::int64_t{static_cast<unsigned char>(selector.text[i])} << (8 * i);
        } else if (lexer_.peek().kind == TokenKind::kDotted) {
          return fail(lexer_.peek(), "selectors of video instructions, such as " + shown(lexer_.peek()) +
                                         ", belong to video instructions");
        }
        break;
      case SymbolKind::kVectorRegister:
        if (!parse_register_component(name, *symbol, operand)) return false;
        break;
      case SymbolKind::kVariable:
        operand.kind = OperandKind::kVariable;
        operand.variable = symbol->index;
        return parse_optional_offset(operand.value);
      case SymbolKind::kFunction:
        operand.kind = OperandKind::kFunction;
        operand.function = symbol->index;
        return true;
      case SymbolKind::kPrototype:
        return fail(name, "'" + printable(name.text) + "' is a call prototype, not an operand");
    }
  } else if (name.text[0] == '%') {
    return parse_special(name, operand);
  } else {
    return fail(name, "'" + printable(name.text) + "' is not declared");
  }

  if (depth > 0 || !lexer_.peek().is('|')) return true;
  lexer_.next();
  const Token second = lexer_.peek();
  if (second.kind != TokenKind::kIdent) return unexpected(second, "a register after '|'");
  Operand pair;
  pair.kind = OperandKind::kPredicatePair;
  pair.elements.resize(2);
  pair.elements[0] = std::move(operand);
  if (!parse_named_operand(form, pair.elements[1], depth + 1)) return false;
  for (const Operand& element : pair.elements) {
    if (element.kind != OperandKind::kRegister && element.kind != OperandKind::kNone &&
        element.kind != OperandKind::kVector) {
      return fail(name, "a pair p|q is of registers or _");
    }
  }
  operand = std::move(pair);
  return true;
}

bool Parser::parse_optional_offset(std::int64_t& offset) {
  if (!lexer_.peek().is('+') && !lexer_.peek().is('-')) return true;
  const Token at = lexer_.peek();
  Constant constant;
  if (!parse_constant(constant)) return false;
  if (constant.is_float) return fail(at, "an offset must be an integer");
  offset = constant.value;
  return true;
}

// [base], [base + offset], [offset], [map, {coordinates}]
bool Parser::parse_address(const Form& form, Operand& operand, int depth) {
  const Token open = lexer_.next();
  if (depth > 0) return fail(open, "an address cannot stand here");
  const Token token = lexer_.peek();
  operand.kind = OperandKind::kAddress;
  if (token.kind == TokenKind::kIdent && token.text != "WARP_SZ") {
    Operand base;
    static const Form without_labels;
    if (!parse_named_operand(without_labels, base, depth + 1)) return false;
    if (base.kind == OperandKind::kRegister) {
      operand.reg = base.reg;
      if (!parse_optional_offset(operand.value)) return false;
    } else if (base.kind == OperandKind::kVariable) {
      operand.variable = base.variable;
      operand.value = base.value;
    } else if (base.kind == OperandKind::kFunction) {
      operand.function = base.function;
    } else {
      return fail(token, "an address begins with a register, a variable or a number");
    }
  } else {
    Constant constant;
    if (!parse_constant(constant)) return false;
    if (constant.is_float) return fail(token, "an address must be an integer");
    operand.value = constant.value;
  }
  while (accept(',')) {
    Operand extra;
    if (operand.elements.size() >= kMaxVectorElements)
      return fail(token, "an address has too many coordinates");
    if (!parse_operand(form, extra, depth + 1)) return false;
    if (extra.kind == OperandKind::kVector) {
      for (Operand& element : extra.elements) operand.elements.push_back(std::move(element));
    } else {
      operand.elements.push_back(std::move(extra));
    }
  }
  return expect(']');
}

bool Parser::parse_vector(const Form& form, Operand& operand, int depth) {
  const Token open = lexer_.next();
  if (depth > 1) return fail(open, "vectors are nested too deeply");
  operand.kind = OperandKind::kVector;
  do {
    const Token at = lexer_.peek();
    if (operand.elements.size() >= kMaxVectorElements) return fail(at, "a vector has too many elements");
    Operand& element = operand.elements.emplace_back();
    if (!parse_operand(form, element, depth + 1)) return false;
    const OperandKind kind = element.kind;
    if (kind == OperandKind::kVector || kind == OperandKind::kLabel || kind == OperandKind::kPredicatePair) {
      return fail(at, "an element of a vector is a register, an immediate or _");
    }
  } while (accept(','));
  return expect('}');
}

}  // namespace echolo::ptx
