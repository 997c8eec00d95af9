// Where instructions come from: .file, .loc and the strings of .debug_str (PTX ISA section 11.5).
#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "ptx/parser.hpp"

namespace echolo::ptx {
namespace {

constexpr std::uint64_t kMaxFiles = 1 << 20;
constexpr std::uint64_t kMaxLine = (1 << 26) - 1;  // line and column share one key
constexpr std::uint64_t kMaxColumn = (1 << 18) - 1;

std::uint64_t place_key(const Position& position) {
  return static_cast<std::uint64_t>(position.file) << 44 | static_cast<std::uint64_t>(position.line) << 18 |
         static_cast<std::uint64_t>(position.column);
}

}  // namespace

std::string Parser::source_of(std::int32_t position) const {
  if (position < 0) return {};
  const Position& at = module_.positions[static_cast<std::size_t>(position)];
  const auto file = static_cast<std::size_t>(at.file);
  if (file >= module_.files.size() || module_.files[file].empty()) return {};
  return printable(module_.files[file]) + ":" + std::to_string(at.line);
}

// .file index "name" [, timestamp, size]
bool Parser::parse_file_directive() {
  const Token at = lexer_.peek();
  std::uint64_t index = 0;
  if (!parse_unsigned(index, kMaxFiles, "the file's number")) return false;
  const Token name = lexer_.next();
  if (name.kind != TokenKind::kString) return unexpected(name, "the file's name in quotes");
  if (index == 0) return fail(at, "file numbers start at 1");
  std::uint64_t unused = 0;
  if (accept(',')) {
    if (!parse_unsigned(unused, std::numeric_limits<std::uint64_t>::max(), "the time stamp") ||
        !expect(',') || !parse_unsigned(unused, std::numeric_limits<std::uint64_t>::max(), "the file size")) {
      return false;
    }
  }
  if (index >= module_.files.size()) module_.files.resize(index + 1);
  std::string& file = module_.files[index];
  file.clear();
  for (std::size_t i = 0; i < name.text.size(); ++i) {
    if (name.text[i] == '\\' && i + 1 < name.text.size()) ++i;
    file += name.text[i];
  }
  return true;
}

std::int32_t Parser::name_index(std::string_view label, std::uint64_t offset) {
  std::string key = std::string(label) + "+" + std::to_string(offset);
  const auto [found, is_new] =
      name_indices_.try_emplace(std::move(key), static_cast<std::int32_t>(module_.function_names.size()));
  if (is_new) {
    module_.function_names.emplace_back();
    pending_names_.push_back({label, offset, lexer_.peek().line});
  }
  return found->second;
}

// The latest position of the function at the same place is the one that later inlined_at clauses mean; an
// equal one is used again.
std::int32_t Parser::position_at(const Position& position) {
  const auto [latest, is_new] =
      latest_position_.try_emplace(place_key(position), static_cast<std::int32_t>(module_.positions.size()));
  if (!is_new) {
    const Position& known = module_.positions[static_cast<std::size_t>(latest->second)];
    if (known.function == position.function && known.inlined_at == position.inlined_at) return latest->second;
    latest->second = static_cast<std::int32_t>(module_.positions.size());
  }
  module_.positions.push_back(position);
  return latest->second;
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
bool Parser::parse_loc() {
  const auto place = [&](Position& position) {
    std::uint64_t file = 0, line = 0, column = 0;
    if (!parse_unsigned(file, kMaxFiles, "the file's number") ||
        !parse_unsigned(line, kMaxLine, "the line") || !parse_unsigned(column, kMaxColumn, "the column")) {
      return false;
    }
    position.file = static_cast<std::int32_t>(file);
    position.line = static_cast<std::int32_t>(line);
    position.column = static_cast<std::int32_t>(column);
    return true;
  };
  Position position;
  position.function = enclosing_name_;
  if (!place(position)) return false;
  while (accept(',')) {
    const Token token = lexer_.next();
    if (token.kind == TokenKind::kIdent && token.text == "function_name") {
      std::string_view label;
      std::uint64_t offset = 0;
      if (!expect_name(label, "a label of .debug_str")) return false;
      if (accept('+') && !parse_unsigned(offset, std::numeric_limits<std::uint32_t>::max(), "the offset"))
        return false;
      position.function = name_index(label, offset);
    } else if (token.kind == TokenKind::kIdent && token.text == "inlined_at") {
      Position caller;
      caller.function = enclosing_name_;
      if (!place(caller)) return false;
      const auto known = latest_position_.find(place_key(caller));
      position.inlined_at = known != latest_position_.end() ? known->second : position_at(caller);
    } else {
      return unexpected(token, "function_name or inlined_at");
    }
  }
  position_ = position_at(position);
  return true;
}

bool Parser::parse_section() {
  const Token name = lexer_.next();
  if (name.kind != TokenKind::kDotted) return unexpected(name, "a section's name, such as .debug_str");
  if (!expect('{')) return false;
  return name.text == "debug_str" ? parse_debug_strings() : skip_section();
}

bool Parser::parse_debug_strings() {
  while (!accept('}')) {
    const Token token = lexer_.next();
    if (token.kind == TokenKind::kIdent) {
      if (!expect(':')) return false;
      string_labels_[token.text] = debug_strings_.size();
    } else if (token.is_dotted("b8")) {
      do {
        Constant byte;
        if (!parse_constant(byte)) return false;
        debug_strings_ += static_cast<char>(byte.value);
      } while (accept(','));
    } else {
      return unexpected(token, "a label, .b8 or '}'");
    }
  }
  return true;
}

// DWARF for debuggers; it says nothing that execution or findings need.
bool Parser::skip_section() {
  for (;;) {
    const Token token = lexer_.next();
    if (token.is('}')) return true;
    const bool is_data = token.kind == TokenKind::kIdent || token.kind == TokenKind::kDotted ||
                         token.kind == TokenKind::kNumber || token.is(',') || token.is(':') ||
                         token.is('+') || token.is('-');
    if (!is_data) return unexpected(token, "data of a debug section or '}'");
  }
}

bool Parser::resolve_debug_names() {
  position_ = -1;
  std::size_t n_bytes = 0;
  for (std::size_t i = 0; i < pending_names_.size(); ++i) {
    const PendingName& pending = pending_names_[i];
    if (pending.line == 0) continue;  // named already
    const auto label = string_labels_.find(pending.label);
    if (label == string_labels_.end()) {
      return fail_line(pending.line,
                       "'" + printable(pending.label) + "' of function_name is no label of .debug_str");
    }
    const std::size_t begin = label->second + pending.offset;
    if (begin >= debug_strings_.size()) {
      return fail_line(pending.line, "'" + printable(pending.label) + "+" + std::to_string(pending.offset) +
                                         "' lies outside .debug_str");
    }
    const std::size_t end = std::min(debug_strings_.find('\0', begin), debug_strings_.size());
    n_bytes += end - begin;
    if (n_bytes > kMaxNameBytes)
      return fail_line(pending.line, "the function names of .debug_str are too long in all");
    module_.function_names[i] = debug_strings_.substr(begin, end - begin);
  }
  return true;
}

}  // namespace echolo::ptx
