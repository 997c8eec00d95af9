// Initial values of variables (PTX ISA section 5.4.4 "Initializers").
#include <bit>

#include "base/text.hpp"
#include "ptx/parser.hpp"

namespace echolo::ptx {
namespace {

// The bits that a constant has in an element of `type`.
std::uint64_t bits_in(Type type, std::int64_t value, bool literal_is_float, int float_bits) {
  if (!literal_is_float) {
    if (type == Type::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (type == Type::kF64) return std::bit_cast<std::uint64_t>(static_cast<double>(value));
    return static_cast<std::uint64_t>(value);
  }
  const bool wants_double = bytes_of(type) == 8;
  if (float_bits == 64 && !wants_double) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
  }
  if (float_bits == 32 && type == Type::kF64) {
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(value));
    return std::bit_cast<std::uint64_t>(static_cast<double>(single));
  }
  return static_cast<std::uint64_t>(value);
}

}  // namespace

bool Parser::parse_initialiser(Variable& variable) {
  n_masked_ = 0;
  const Token at = lexer_.peek();
  if (variable.space != Space::kGlobal && variable.space != Space::kConst) {
    return fail(at, "only .global and .const variables may have an initial value");
  }
  if (!at.is('{')) {
    if (!dimensions_.empty()) return unexpected(at, "'{', as the variable is an array");
    return parse_initialiser_element(variable, 0);
  }
  lexer_.next();
  if (dimensions_.empty()) {
    if (!parse_initialiser_element(variable, 0)) return false;
    return expect('}');
  }
  if (!parse_initialiser_list(variable, 0, 0)) return false;
  if (n_masked_ != 0) return fail(at, "an address that is written byte by byte lacks bytes");
  // `x[] = {...}` takes its length from the list.
  if (dimensions_[0] == 0) variable.size = variable.initial.size();
  return true;
}

// The list at nesting level `level`, whose '{' is read; `begin` is the byte that it starts at.
bool Parser::parse_initialiser_list(Variable& variable, std::size_t level, std::uint64_t begin) {
  std::uint64_t stride = static_cast<std::uint64_t>(bytes_of(variable.type));
  for (std::size_t i = level + 1; i < dimensions_.size(); ++i) stride *= dimensions_[i];
  const bool innermost = level + 1 == dimensions_.size();
  std::uint64_t offset = begin;
  while (!accept('}')) {
    const Token at = lexer_.peek();
    if (!innermost && accept('{')) {
      if (!parse_initialiser_list(variable, level + 1, offset)) return false;
      offset += stride;
    } else {
      // Elements without inner braces fill one after the other.
      if (!parse_initialiser_element(variable, offset)) return false;
      offset += static_cast<std::uint64_t>(bytes_of(variable.type));
    }
    if (dimensions_[level] != 0 && offset - begin > stride * dimensions_[level]) {
      return fail(at, "'" + printable(variable.name) + "' has more initial values than elements");
    }
    if (!lexer_.peek().is('}') && !expect(',')) return false;
  }
  return true;
}

bool Parser::put_bits(const Token& at, Variable& variable, std::uint64_t offset, std::uint64_t bits,
                      std::uint64_t n_bytes) {
  const bool unsized = !dimensions_.empty() && dimensions_[0] == 0;
  if (!unsized && offset + n_bytes > variable.size) {
    return fail(at, "'" + printable(variable.name) + "' has more initial values than elements");
  }
  if (offset > variable.initial.size()) {
    n_padding_ += offset - variable.initial.size();
    if (n_padding_ > kMaxPaddingBytes) return fail(at, "initial values leave out more than 64 MiB in all");
  }
  if (variable.initial.size() < offset + n_bytes) variable.initial.resize(offset + n_bytes);
  for (std::uint64_t i = 0; i < n_bytes; ++i) {
    variable.initial[offset + i] = i < 8 ? static_cast<std::uint8_t>(bits >> (8 * i)) : 0;
  }
  return true;
}

bool Parser::parse_initialiser_element(Variable& variable, std::uint64_t offset) {
  const Token at = lexer_.peek();
  if (at.kind == TokenKind::kIdent && at.text != "WARP_SZ")
    return parse_symbol_reference(variable, offset, std::nullopt);
  Constant constant;
  if (!parse_constant(constant)) return false;
  if (lexer_.peek().is('(')) {
    // 0xFF00(symbol): one byte of an address
    lexer_.next();
    return parse_symbol_reference(variable, offset, static_cast<std::uint64_t>(constant.value)) &&
           expect(')');
  }
  if (n_masked_ != 0) return fail(at, "an address that is written byte by byte lacks bytes");
  const std::uint64_t bits = bits_in(variable.type, constant.value, constant.is_float, constant.float_bits);
  return put_bits(at, variable, offset, bits, static_cast<std::uint64_t>(bytes_of(variable.type)));
}

// symbol [+ addend], or generic(symbol) [+ addend], also generic(symbol + addend).
bool Parser::parse_symbol_reference(Variable& variable, std::uint64_t offset,
                                    std::optional<std::uint64_t> mask) {
  const Token at = lexer_.peek();
  Variable::Relocation relocation;
  relocation.offset = offset;
  std::string_view name;
  if (!expect_name(name, "a symbol")) return false;
  if (name == "generic" && accept('(')) {
    relocation.generic = true;
    if (!expect_name(name, "a symbol") || !parse_optional_offset(relocation.addend) || !expect(')'))
      return false;
  }
  std::int64_t more = 0;
  if (!parse_optional_offset(more)) return false;
  relocation.addend = static_cast<std::int64_t>(static_cast<std::uint64_t>(relocation.addend) +
                                                static_cast<std::uint64_t>(more));
  if (mask) return add_masked(at, variable, offset, *mask, relocation, name);
  if (n_masked_ != 0) return fail(at, "an address that is written byte by byte lacks bytes");
  if (bytes_of(variable.type) != 8) return fail(at, "an address needs an element of 8 bytes");
  variable.relocations.push_back(relocation);
  relocation_names_.emplace_back(name, at.line);
  return put_bits(at, variable, offset, 0, 8);
}

bool Parser::add_masked(const Token& at, Variable& variable, std::uint64_t offset, std::uint64_t mask,
                        Variable::Relocation relocation, std::string_view name) {
  if (bytes_of(variable.type) != 1) return fail(at, "a byte of an address needs an element of 1 byte");
  if (mask != std::uint64_t{0xff} << (8 * n_masked_))
    return fail(at, "the bytes of an address must stand in order");
  if (n_masked_ == 0) {
    variable.relocations.push_back(relocation);
    relocation_names_.emplace_back(name, at.line);
  } else {
    const Variable::Relocation& begun = variable.relocations.back();
    const bool same = relocation_names_.back().first == name && begun.addend == relocation.addend &&
                      begun.generic == relocation.generic &&
                      begun.offset + static_cast<std::uint64_t>(n_masked_) == offset;
    if (!same) return fail(at, "the bytes of an address must be of one symbol");
  }
  n_masked_ = (n_masked_ + 1) % 8;
  return put_bits(at, variable, offset, 0, 1);
}

bool Parser::resolve_relocations() {
  for (const PendingRelocation& pending : pending_relocations_) {
    std::vector<Variable>& owner =
        pending.function < 0 ? module_.variables
                             : module_.functions[static_cast<std::size_t>(pending.function)].variables;
    Variable::Relocation& relocation = owner[pending.variable].relocations[pending.relocation];
    const auto symbol = globals_.find(pending.name);
    if (symbol == globals_.end()) {
      return fail_line(pending.line, "'" + printable(pending.name) + "' is not declared in this module");
    }
    (symbol->second.kind == SymbolKind::kFunction ? relocation.function : relocation.variable) =
        symbol->second.index;
  }
  return true;
}

}  // namespace echolo::ptx
