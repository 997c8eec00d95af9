#include "litmus/parser.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/text.hpp"

namespace echolo::litmus {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_thread_name(const std::string& text) {
  return text.size() > 1 && text[0] == 'P' && all_digits(text.substr(1));
}

// CTAs whose cluster is not given are clusters of their own, apart from all that are given.
constexpr int kOwnCluster = 1 << 24;

}  // namespace

bool is_register_name(const std::string& text) {
  return text.size() > 1 && text[0] == 'r' && all_digits(text.substr(1));
}

Status Parser::expect(const char* text, const char* where) {
  if (accept(text)) return {};
  return error_at(peek(),
                  std::string("expected '") + text + "' " + where + ", not '" + printable(peek().text) + "'");
}

Result<std::int64_t> Parser::number() {
  const Token& first = peek();
  const bool negative = accept("-");
  if (peek().kind != TokenKind::kNumber) {
    return error_at(peek(), "expected a number, not '" + printable(peek().text) + "'");
  }
  const std::string digits = take().text;
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  std::uint64_t value = 0;
  for (std::size_t i = hex ? 2 : 0; i < digits.size(); ++i) {
    const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(digits[i])));
    int digit = c >= '0' && c <= '9' ? c - '0' : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    const std::uint64_t base = hex ? 16 : 10;
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (digit < 0) return error_at(first, "'" + printable(digits) + "' is no number");
    if (value > (kMost - static_cast<std::uint64_t>(digit)) / base) {
      return error_at(first, "'" + printable(digits) + "' does not fit in 64 bits");
    }
    value = value * base + static_cast<std::uint64_t>(digit);
  }
  if (hex && digits.size() == 2) return error_at(first, "'" + printable(digits) + "' is no number");
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

int Parser::location(const std::string& name) const {
  for (std::size_t i = 0; i < program_.locations.size(); ++i) {
    if (program_.locations[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int Parser::address(const std::string& name) const {
  for (std::size_t i = 0; i < program_.addresses.size(); ++i) {
    if (program_.addresses[i].name == name) return static_cast<int>(i);
  }
  const auto other = same_address_.find(name);
  return other == same_address_.end() ? -1 : other->second;
}

int Parser::register_in(int thread, const std::string& name) {
  Thread& owner = program_.threads[thread];
  const int known = owner.register_of(name);
  if (known >= 0) return known;
  owner.registers.push_back(name);
  owner.initial.push_back(0);
  return static_cast<int>(owner.registers.size()) - 1;
}

Status Parser::header() {
  std::size_t at = 0;
  int line = 1;
  const auto skip = [&] {
    if (text_[at++] == '\n') ++line;
  };
  while (at < text_.size() && std::isspace(static_cast<unsigned char>(text_[at])) != 0) skip();
  if (text_.compare(at, 3, "PTX") != 0 && text_.compare(at, 3, "ptx") != 0) {
    return input_error(file_, line, "a litmus file begins with 'PTX' and the test's name");
  }
  const std::size_t end = text_.find_first_of("\r\n{\"", at);
  program_.name = std::string(trim(text_.substr(at + 3, end == std::string::npos ? end : end - at - 3)));
  bool quoted = false;
  while (at < text_.size() && (quoted || text_[at] != '{')) {
    if (text_[at] == '"') quoted = !quoted;
    skip();
  }
  if (at == text_.size()) {
    return input_error(file_, line,
                       quoted ? "a quoted description never ends" : "no initial values: expected '{'");
  }
  Result<std::vector<Token>> tokens = tokenize(text_, file_, at, line);
  if (!tokens) return tokens.error();
  tokens_ = std::move(tokens).value();
  return {};
}

Status Parser::initial_values() {
  if (Status status = expect("{", "before the initial values"); !status) return status;
  while (!is("}")) {
    if (accept(";")) continue;
    if (Status status = initial_value(); !status) return status;
    if (!is("}")) {
      if (Status status = expect(";", "after an initial value"); !status) return status;
    }
  }
  take();
  accept(";");
  return {};
}

Status Parser::add_location(const Token& name, std::int64_t initial) {
  if (address(name.text) >= 0 || multicast_.count(name.text) != 0) {
    return error_at(name, "'" + printable(name.text) + "' is declared twice");
  }
  if (static_cast<int>(program_.addresses.size()) >= kMaxLocations)
    return error_at(name, "too many locations");
  program_.addresses.push_back({name.text, static_cast<int>(program_.locations.size())});
  program_.locations.push_back({name.text, initial, 0});
  return {};
}

Status Parser::initial_value() {
  const Token name = take();
  if ((is_thread_name(name.text) || name.kind == TokenKind::kNumber) && is(":")) {
    const std::string digits = name.kind == TokenKind::kNumber ? name.text : name.text.substr(1);
    if (!all_digits(digits) || digits.size() > 6)
      return error_at(name, "'" + printable(name.text) + "' is no thread");
    return thread_register(std::stoi(digits), name);
  }
  if (name.kind != TokenKind::kWord || name.text.find('.') != std::string::npos ||
      is_register_name(name.text)) {
    return error_at(name, "expected a location or a thread's register, not '" + printable(name.text) + "'",
                    "x = 0; P0:r1 = 0; y @ generic aliases x;");
  }
  if (accept("@")) return alias(name);
  if (Status status = expect("=", "after a location's name"); !status) return status;
  if (peek().kind == TokenKind::kWord || is("&")) {
    return error_at(peek(), "pointers as initial values are not supported",
                    "y @ generic aliases x; gives x a second address");
  }
  Result<std::int64_t> value = number();
  if (!value) return value.error();
  return add_location(name, *value);
}

Status Parser::thread_register(int id, const Token& at) {
  take();
  const Token name = take();
  if (!is_register_name(name.text)) {
    return error_at(name, "expected a register like r0, not '" + printable(name.text) + "'");
  }
  if (Status status = expect("=", "after a register's name"); !status) return status;
  if (peek().kind == TokenKind::kWord || is("&")) {
    return error_at(peek(), "pointers as initial values are not supported");
  }
  Result<std::int64_t> value = number();
  if (!value) return value.error();
  initial_registers_.push_back({id, name.text, *value, at});
  return {};
}

Status Parser::alias(const Token& name) {
  const Token kind = take();
  if (kind.text == "multicast") return multicast(name);
  if (kind.text == "pe") {
    const int known = location(name.text);
    if (known < 0) return error_at(name, "'" + printable(name.text) + "' has no initial value yet");
    Result<std::int64_t> pe = number();
    if (!pe) return pe.error();
    if (*pe < 0 || *pe > 65535) return error_at(kind, "a PE is 0 to 65535");
    program_.locations[known].pe = static_cast<int>(*pe);
    return {};
  }
  if (kind.text == "mbarrier") {
    Result<std::int64_t> count = number();
    if (!count) return count.error();
    if (*count < 1 || *count > 1024) return error_at(kind, "an mbarrier's count is 1 to 1024");
    mbarrier_counts_[name.text] = *count;
    return add_location(name, 0);
  }
  static const std::string kProxies[] = {"generic", "constant", "texture", "surface", "async"};
  if (std::find(std::begin(kProxies), std::end(kProxies), kind.text) == std::end(kProxies)) {
    return error_at(kind, "'" + printable(kind.text) + "' is no proxy", did_you_mean(kind.text, kProxies));
  }
  if (Status status = expect("aliases", "after the proxy"); !status) return status;
  const Token target = take();
  const int of = address(target.text);
  if (of < 0) return error_at(target, "'" + printable(target.text) + "' is not declared");
  if (address(name.text) >= 0 || multicast_.count(name.text) != 0) {
    return error_at(name, "'" + printable(name.text) + "' is declared twice");
  }
  if (static_cast<int>(program_.addresses.size()) >= kMaxLocations)
    return error_at(name, "too many locations");
  // A generic alias is an address of its own; through another proxy it is that same address, accessed
  // otherwise.
  if (kind.text == "generic") {
    program_.addresses.push_back({name.text, program_.addresses[of].location});
  } else {
    same_address_[name.text] = of;
  }
  return {};
}

Status Parser::multicast(const Token& name) {
  if (Status status = expect("aliases", "after 'multicast'"); !status) return status;
  if (address(name.text) >= 0 || multicast_.count(name.text) != 0) {
    return error_at(name, "'" + printable(name.text) + "' is declared twice");
  }
  do {
    const Token replica = take();
    const int of = location(replica.text);
    if (of < 0) return error_at(replica, "'" + printable(replica.text) + "' is no location");
    if (static_cast<int>(program_.addresses.size()) >= kMaxLocations)
      return error_at(name, "too many locations");
    multicast_[name.text].push_back(static_cast<int>(program_.addresses.size()));
    program_.addresses.push_back({name.text + "#" + replica.text, of});
  } while (accept(","));
  return {};
}

Status Parser::placement(Thread& thread) {
  const auto id = [&](const char* what) -> Result<int> {
    if (Status status = expect(what, "in a thread's place (P0@cta 0,gpu 0)"); !status) return status.error();
    Result<std::int64_t> value = number();
    if (!value) return value.error();
    if (*value < 0 || *value > 65535) return error_at(peek(), std::string("a ") + what + " is 0 to 65535");
    return static_cast<int>(*value);
  };
  Result<int> cta = id("cta");
  if (!cta) return cta.error();
  if (Status status = expect(",", "after the cta"); !status) return status;
  thread.place.cta = *cta;
  thread.place.cluster = kOwnCluster + *cta;
  if (is("cluster")) {
    Result<int> cluster = id("cluster");
    if (!cluster) return cluster.error();
    thread.place.cluster = *cluster;
    if (Status status = expect(",", "after the cluster"); !status) return status;
  }
  Result<int> gpu = id("gpu");
  if (!gpu) return gpu.error();
  thread.place.gpu = *gpu;
  return {};
}

Status Parser::threads() {
  do {
    const Token name = take();
    if (!is_thread_name(name.text) || name.text.size() > 7) {
      return error_at(name, "expected a thread like P0@cta 0,gpu 0, not '" + printable(name.text) + "'");
    }
    Thread thread;
    thread.id = std::stoi(name.text.substr(1));
    for (const Thread& other : program_.threads) {
      if (other.id == thread.id) return error_at(name, "thread " + name.text + " appears twice");
    }
    if (Status status = expect("@", "after a thread's name"); !status) return status;
    if (Status status = placement(thread); !status) return status;
    if (static_cast<int>(program_.threads.size()) >= kMaxThreads) return error_at(name, "too many threads");
    program_.threads.push_back(std::move(thread));
  } while (accept("|"));
  if (Status status = expect(";", "after the threads"); !status) return status;
  for (const InitialRegister& each : initial_registers_) {
    for (std::size_t t = 0; t < program_.threads.size(); ++t) {
      if (program_.threads[t].id != each.id) continue;
      program_.threads[t].initial[register_in(static_cast<int>(t), each.name)] = each.value;
    }
  }
  return {};
}

Status Parser::cell(int thread) {
  thread_ = thread;
  while (peek().kind == TokenKind::kWord && is(":", 1)) {
    const Token name = take();
    take();
    if (is_register_name(name.text) || name.text.find('.') != std::string::npos) {
      return error_at(name, "'" + printable(name.text) + "' cannot be a label");
    }
    const int target = static_cast<int>(program_.threads[thread].code.size());
    if (!labels_.emplace(Label{thread, name.text}, target).second) {
      return error_at(name, "label '" + printable(name.text) + "' appears twice in this thread");
    }
  }
  if (is("|") || is(";")) return {};
  return instruction(thread);
}

Status Parser::table() {
  const auto ends = [&] {
    return peek().kind == TokenKind::kEnd || is("exists") || is("~") || is("not") || is("forall") ||
           is("filter") || is("locations") || is("final");
  };
  const int columns = static_cast<int>(program_.threads.size());
  while (!ends()) {
    for (int thread = 0;; ++thread) {
      if (thread == columns) {
        return error_at(peek(), "this row has more than " + std::to_string(columns) + " columns");
      }
      if (Status status = cell(thread); !status) return status;
      if (accept(";")) break;
      if (Status status = expect("|", "or ';' after an instruction"); !status) return status;
    }
  }
  return {};
}

Status Parser::resolve_labels() {
  for (const Jump& jump : jumps_) {
    const auto at = labels_.find({jump.thread, jump.label});
    if (at == labels_.end()) {
      return input_error(file_, jump.line, "no label '" + printable(jump.label) + "' in this thread", {},
                         jump.column);
    }
    program_.threads[jump.thread].code[jump.instruction].target = at->second;
  }
  return {};
}

Result<Program> Parser::parse() {
  program_.file = file_;
  if (text_.size() > kMaxText) return input_error(file_, 1, "a litmus file has at most 1 MiB");
  for (Status (Parser::*step)() : {&Parser::header, &Parser::initial_values, &Parser::threads, &Parser::table,
                                   &Parser::resolve_labels, &Parser::observed_list, &Parser::question}) {
    if (Status status = (this->*step)(); !status) return status.error();
  }
  return std::move(program_);
}

Result<Program> parse_litmus(const std::string& text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace echolo::litmus
