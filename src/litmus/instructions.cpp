// One instruction of a litmus test.
#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "litmus/parser.hpp"

namespace echolo::litmus {
namespace {

using model::Proxy;
using model::Scope;

const std::map<std::string, Arithmetic> kAtomics = {
    {"add", Arithmetic::kAdd}, {"sub", Arithmetic::kSub}, {"mul", Arithmetic::kMul},
    {"div", Arithmetic::kDiv}, {"and", Arithmetic::kAnd}, {"or", Arithmetic::kOr},
    {"xor", Arithmetic::kXor}, {"min", Arithmetic::kMin}, {"max", Arithmetic::kMax},
    {"inc", Arithmetic::kInc}, {"dec", Arithmetic::kDec}, {"exch", Arithmetic::kExch},
    {"cas", Arithmetic::kCas}};
const std::map<std::string, Compare> kBranches = {{"beq", Compare::kEq}, {"bne", Compare::kNe},
                                                  {"blt", Compare::kLt}, {"ble", Compare::kLe},
                                                  {"bgt", Compare::kGt}, {"bge", Compare::kGe}};
const std::map<std::string, Scope> kScopes = {
    {"cta", Scope::kCta}, {"cluster", Scope::kCluster}, {"gpu", Scope::kGpu}, {"sys", Scope::kSys}};

std::vector<std::string> keys(const auto& map) {
  std::vector<std::string> all;
  for (const auto& [key, value] : map) all.push_back(key);
  return all;
}

}  // namespace

Status Parser::semantics(const std::vector<std::string>& parts, std::size_t& from, const std::string& allowed,
                         Instruction& out) {
  const std::string order = from < parts.size() ? parts[from] : "";
  if (order.empty() || (" " + allowed + " ").find(" " + order + " ") == std::string::npos) {
    return error_at(*mnemonic_, "'" + printable(mnemonic_->text) + "' wants one of: " + allowed);
  }
  ++from;
  if (order == "weak") return {};
  out.strong = true;
  if (order == "volatile" || order == "mmio") {  // "as relaxed with system scope"
    out.scope = Scope::kSys;
    return {};
  }
  out.acquire = order == "acquire" || order == "acq_rel";
  out.release = order == "release" || order == "acq_rel";
  out.sc = order == "sc";
  const auto scope = kScopes.find(from < parts.size() ? parts[from] : "");
  if (scope == kScopes.end()) {
    return error_at(*mnemonic_, "'" + printable(mnemonic_->text) + "' wants a scope after ." + order,
                    ".cta, .cluster, .gpu or .sys");
  }
  out.scope = scope->second;
  ++from;
  return {};
}

Status Parser::no_more(const std::vector<std::string>& parts, std::size_t from) {
  if (from == parts.size()) return {};
  return error_at(*mnemonic_, "'" + printable(mnemonic_->text) + "': '." + printable(parts[from]) +
                                  "' does not belong there");
}

Result<int> Parser::register_operand() {
  const Token name = take();
  if (name.kind != TokenKind::kWord || !is_register_name(name.text)) {
    return error_at(name, "expected a register like r0, not '" + printable(name.text) + "'");
  }
  return register_in(thread_, name.text);
}

Result<int> Parser::address_operand() {
  const bool bracket = accept("[");
  const Token name = take();
  const int known = name.kind == TokenKind::kWord ? address(name.text) : -1;
  if (known < 0) {
    std::vector<std::string> names;
    for (const Address& each : program_.addresses) names.push_back(each.name);
    return error_at(name, "'" + printable(name.text) + "' is no location with an initial value",
                    did_you_mean(name.text, names));
  }
  if (bracket) {
    if (Status status = expect("]", "after an address"); !status) return status.error();
  }
  return known;
}

Result<Operand> Parser::operand() {
  Operand operand;
  if (peek().kind == TokenKind::kWord) {
    Result<int> reg = register_operand();
    if (!reg) return reg.error();
    operand.reg = *reg;
    return operand;
  }
  Result<std::int64_t> value = number();
  if (!value) return value.error();
  operand.constant = *value;
  return operand;
}

Status Parser::next_operand(const char* where, Operand& out) {
  if (Status status = expect(",", where); !status) return status;
  Result<Operand> value = operand();
  if (!value) return value.error();
  out = *value;
  return {};
}

Status Parser::emit(Instruction instruction) {
  Thread& thread = program_.threads[thread_];
  if (static_cast<int>(thread.code.size()) >= kMaxInstructions)
    return error_at(*mnemonic_, "too many instructions");
  instruction.line = mnemonic_->line;
  thread.code.push_back(instruction);
  return {};
}

int Parser::hidden_register() {
  return register_in(thread_, "%" + std::to_string(program_.threads[thread_].registers.size()));
}

Status Parser::load(const std::vector<std::string>& parts, Proxy proxy) {
  Instruction out;
  out.op = Op::kLoad;
  out.proxy = proxy;
  std::size_t from = 1;
  const bool strong_too = proxy == Proxy::kGeneric || proxy == Proxy::kSurface;
  if (Status status = semantics(parts, from, strong_too ? "weak relaxed acquire volatile mmio" : "weak", out);
      !status) {
    return status;
  }
  if (Status status = no_more(parts, from); !status) return status;
  Result<int> reg = register_operand();
  if (!reg) return reg.error();
  out.destination = *reg;
  if (Status status = expect(",", "after the register"); !status) return status;
  if (peek().kind == TokenKind::kNumber || is("-") || is_register_name(peek().text)) {
    Result<Operand> value = operand();
    if (!value) return value.error();
    out.op = Op::kMove;
    out.a = *value;
    return emit(out);
  }
  Result<int> address = address_operand();
  if (!address) return address.error();
  out.address = *address;
  return emit(out);
}

Status Parser::store(const std::vector<std::string>& parts, Proxy proxy) {
  Instruction out;
  out.op = Op::kStore;
  out.proxy = proxy;
  std::size_t from = 1;
  if (Status status = semantics(parts, from, "weak relaxed release volatile mmio", out); !status)
    return status;
  if (Status status = no_more(parts, from); !status) return status;
  Result<int> address = address_operand();
  if (!address) return address.error();
  out.address = *address;
  if (Status status = next_operand("after the address", out.a); !status) return status;
  return emit(out);
}

Status Parser::atomic(const std::vector<std::string>& parts, Proxy proxy, bool has_destination) {
  Instruction out;
  out.op = Op::kAtomic;
  out.proxy = proxy;
  std::size_t from = 1;
  if (Status status = semantics(parts, from, "relaxed acquire release acq_rel", out); !status) return status;
  const std::string name = from < parts.size() ? parts[from] : "";
  const auto how = kAtomics.find(name);
  if (how == kAtomics.end() || (!has_destination && (name == "cas" || name == "exch"))) {
    return error_at(*mnemonic_, "'" + printable(name) + "' is no operation of " + parts[0],
                    did_you_mean(name, keys(kAtomics)));
  }
  if (Status status = no_more(parts, from + 1); !status) return status;
  out.arithmetic = how->second;
  if (has_destination) {
    Result<int> reg = register_operand();
    if (!reg) return reg.error();
    out.destination = *reg;
    if (Status status = expect(",", "after the register"); !status) return status;
  }
  Result<int> address = address_operand();
  if (!address) return address.error();
  out.address = *address;
  if (Status status = next_operand("after the address", out.a); !status) return status;
  if (out.arithmetic == Arithmetic::kCas) {
    if (Status status = next_operand("after the value to compare with", out.b); !status) return status;
  }
  return emit(out);
}

Status Parser::fence(const std::vector<std::string>& parts) {
  Instruction out;
  out.op = Op::kFence;
  std::size_t from = 1;
  if (parts.size() > 1 && parts[1] == "proxy") {
    static const std::map<std::string, Proxy> kProxies = {{"constant", Proxy::kConstant},
                                                          {"texture", Proxy::kTexture},
                                                          {"surface", Proxy::kSurface},
                                                          {"async", Proxy::kAsync}};
    const std::string name = parts.size() > 2 ? parts[2] : "";
    if (Status status = no_more(parts, std::min<std::size_t>(parts.size(), 3)); !status) return status;
    if (name == "alias") {
      out.op = Op::kAliasFence;
      return emit(out);
    }
    const auto proxy = kProxies.find(name);
    if (proxy == kProxies.end()) {
      return error_at(*mnemonic_, "'" + printable(name) + "' is no proxy that a fence can name",
                      "alias, async, constant, surface or texture");
    }
    out.op = Op::kProxyFence;
    out.proxy = proxy->second;
    return emit(out);
  }
  if (Status status = semantics(parts, from, "acq_rel sc", out); !status) return status;
  if (Status status = no_more(parts, from); !status) return status;
  return emit(out);
}

// PTX ISA, "membar": a synonym of fence.sc.
Status Parser::membar(const std::vector<std::string>& parts) {
  Instruction out;
  out.op = Op::kFence;
  out.strong = out.sc = true;
  const std::string level = parts.size() == 2 ? parts[1] : "";
  if (level != "cta" && level != "gl" && level != "sys") {
    return error_at(*mnemonic_, "membar wants .cta, .gl or .sys");
  }
  out.scope = level == "cta" ? Scope::kCta : level == "gl" ? Scope::kGpu : Scope::kSys;
  return emit(out);
}

Status Parser::barrier(const std::vector<std::string>& parts) {
  Instruction out;
  const bool sync = mnemonic_->text == "bar.cta.sync";
  if (!sync && mnemonic_->text != "bar.cta.arrive") {
    return error_at(*mnemonic_,
                    "'" + printable(mnemonic_->text) + "' is no barrier; bar.cta.sync or bar.cta.arrive");
  }
  if (Status status = no_more(parts, 3); !status) return status;
  out.op = sync ? Op::kBarrierSync : Op::kBarrierArrive;
  for (Operand* each : {&out.a, &out.b, &out.c}) {
    Result<Operand> value = operand();
    if (!value) return value.error();
    *each = *value;
    out.has_quorum = each == &out.c;
    if (!is(",") || each == &out.c) break;
    take();
  }
  if (out.has_quorum && out.c.reg < 0 && out.c.constant < 1) {
    return error_at(*mnemonic_, "a barrier waits for at least one thread");
  }
  return emit(out);
}

Status Parser::branch(Compare how) {
  Instruction out;
  out.op = Op::kBranch;
  out.compare = how;
  for (Operand* each : {&out.a, &out.b}) {
    Result<Operand> value = operand();
    if (!value) return value.error();
    *each = *value;
    if (Status status = expect(",", "in a branch"); !status) return status;
  }
  const Token label = take();
  jumps_.push_back({thread_, static_cast<int>(program_.threads[thread_].code.size()), label.text, label.line,
                    label.column});
  return emit(out);
}

Status Parser::arithmetic(Arithmetic how) {
  Instruction out;
  out.op = Op::kArithmetic;
  out.arithmetic = how;
  Result<int> reg = register_operand();
  if (!reg) return reg.error();
  out.destination = *reg;
  for (Operand* each : {&out.a, &out.b}) {
    if (Status status = next_operand("between operands", *each); !status) return status;
  }
  return emit(out);
}

Status Parser::instruction(int thread) {
  thread_ = thread;
  const Token mnemonic = take();
  mnemonic_ = &mnemonic;
  if (mnemonic.kind != TokenKind::kWord) {
    return error_at(mnemonic, "expected an instruction, not '" + printable(mnemonic.text) + "'");
  }
  const std::vector<std::string> parts = split(mnemonic.text, '.');
  const std::string& name = parts[0];
  if (name == "ld") return load(parts, Proxy::kGeneric);
  if (name == "tld") return load(parts, Proxy::kTexture);
  if (name == "suld") return load(parts, Proxy::kSurface);
  if (name == "cold") return load(parts, Proxy::kConstant);
  if (name == "st") return store(parts, Proxy::kGeneric);
  if (name == "sust") return store(parts, Proxy::kSurface);
  if (name == "atom" || name == "suatom") {
    return atomic(parts, name == "atom" ? Proxy::kGeneric : Proxy::kSurface, true);
  }
  if (name == "red" || name == "sured") {
    return atomic(parts, name == "red" ? Proxy::kGeneric : Proxy::kSurface, false);
  }
  if (name == "fence") return fence(parts);
  if (name == "membar") return membar(parts);
  if (name == "bar" || name == "barrier") return barrier(parts);
  if (name == "mbarrier") return mbarrier(parts);
  if (name == "cp") return async_copy(parts);
  if (name == "nvshmem") return nvshmem(parts);
  if (name == "multimem") return multimem(parts);
  if (parts.size() == 1) {
    if (name == "goto") {
      const Token label = take();
      jumps_.push_back({thread_, static_cast<int>(program_.threads[thread_].code.size()), label.text,
                        label.line, label.column});
      Instruction out;
      out.op = Op::kJump;
      return emit(out);
    }
    if (name == "mov") {
      Instruction out;
      out.op = Op::kMove;
      Result<int> reg = register_operand();
      if (!reg) return reg.error();
      out.destination = *reg;
      if (Status status = next_operand("after the register", out.a); !status) return status;
      return emit(out);
    }
    if (const auto how = kBranches.find(name); how != kBranches.end()) return branch(how->second);
    const auto how = kAtomics.find(name);
    if (how != kAtomics.end() && name != "cas" && name != "exch") return arithmetic(how->second);
  }
  std::vector<std::string> known = {"ld",   "tld",    "suld", "cold",    "st",       "sust",
                                    "atom", "suatom", "red",  "sured",   "fence",    "bar",
                                    "goto", "mov",    "cp",   "nvshmem", "mbarrier", "multimem"};
  for (const std::string& each : keys(kBranches)) known.push_back(each);
  return error_at(mnemonic, "'" + printable(mnemonic.text) + "' is no instruction",
                  did_you_mean(name, known));
}

}  // namespace echolo::litmus
