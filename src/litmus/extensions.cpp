// Instructions that Dat3M's syntax does not have (docs/memory-model.md, "Extensions"). Where one is made of
// others, it is written out here.
#include <map>

#include "base/text.hpp"
#include "litmus/parser.hpp"

namespace echolo::litmus {

using model::Proxy;
using model::Scope;

// Repeats `load` until what it returns satisfies the comparison.
Status Parser::spin(Instruction load, Compare until, Operand bound) {
  static const std::map<Compare, Compare> kOpposite = {
      {Compare::kEq, Compare::kNe}, {Compare::kNe, Compare::kEq}, {Compare::kLt, Compare::kGe},
      {Compare::kGe, Compare::kLt}, {Compare::kGt, Compare::kLe}, {Compare::kLe, Compare::kGt}};
  const int start = static_cast<int>(program_.threads[thread_].code.size());
  load.op = Op::kLoad;
  load.destination = hidden_register();
  if (Status status = emit(load); !status) return status;
  Instruction again;
  again.op = Op::kBranch;
  again.compare = kOpposite.at(until);
  again.a.reg = load.destination;
  again.b = bound;
  again.target = start;
  return emit(again);
}

// mbarrier.arrive.{release,relaxed}.SCOPE b      counts an arrival
// mbarrier.wait.{acquire,relaxed}.SCOPE b, PHASE  waits until that many phases and one more are complete
Status Parser::mbarrier(const std::vector<std::string>& parts) {
  const std::string what = parts.size() > 1 ? parts[1] : "";
  if (what != "arrive" && what != "wait") return error_at(*mnemonic_, "mbarrier wants .arrive or .wait");
  Instruction out;
  std::size_t from = 2;
  if (Status status = semantics(parts, from, what == "arrive" ? "release relaxed" : "acquire relaxed", out);
      !status) {
    return status;
  }
  if (Status status = no_more(parts, from); !status) return status;
  const Token name = peek();
  Result<int> address = address_operand();
  if (!address) return address.error();
  const auto count = mbarrier_counts_.find(name.text);
  if (count == mbarrier_counts_.end()) {
    return error_at(name, "'" + printable(name.text) + "' is no mbarrier",
                    name.text + " @ mbarrier 1; declares one");
  }
  out.address = *address;
  if (what == "arrive") {
    out.op = Op::kAtomic;
    out.a.constant = 1;
    return emit(out);
  }
  if (Status status = expect(",", "before the phase"); !status) return status;
  Result<std::int64_t> phase = number();
  if (!phase) return phase.error();
  if (*phase < 0 || *phase > 1000) return error_at(name, "a phase is 0 to 1000");
  Operand arrivals;
  arrivals.constant = (*phase + 1) * count->second;
  return spin(out, Compare::kGe, arrivals);
}

// cp.async.bulk d, s [, b]   copies through the async proxy; arrives on mbarrier b when done
// cp.async.bulk.wait         waits for all earlier ones of this thread
Status Parser::async_copy(const std::vector<std::string>& parts) {
  Instruction out;
  if (mnemonic_->text == "cp.async.bulk.wait") {
    out.op = Op::kAwaitPuts;
    out.proxy = Proxy::kAsync;
    return emit(out);
  }
  if (mnemonic_->text != "cp.async.bulk") {
    return error_at(*mnemonic_,
                    "'" + printable(mnemonic_->text) + "' is no copy; cp.async.bulk or cp.async.bulk.wait");
  }
  if (Status status = no_more(parts, 3); !status) return status;
  out.op = Op::kPut;
  out.proxy = Proxy::kAsync;
  Result<int> target = address_operand();
  if (!target) return target.error();
  if (Status status = expect(",", "after the target"); !status) return status;
  Result<int> source = address_operand();
  if (!source) return source.error();
  out.address = *target;
  out.source = *source;
  if (accept(",")) {
    const Token name = peek();
    Result<int> barrier = address_operand();
    if (!barrier) return barrier.error();
    if (mbarrier_counts_.count(name.text) == 0)
      return error_at(name, "'" + printable(name.text) + "' is no mbarrier");
    out.signal = *barrier;
  }
  return emit(out);
}

// nvshmem.put d, s; .put_nbi d, s; .p d, VALUE; .put_signal d, s, sig, VALUE; .put_signal_nbi; .signal sig,
// VALUE; .wait sig, VALUE (until at least that); .fence; .quiet
Status Parser::nvshmem(const std::vector<std::string>& parts) {
  if (Status status = no_more(parts, std::min<std::size_t>(parts.size(), 2)); !status) return status;
  const std::string what = parts.size() > 1 ? parts[1] : "";
  Instruction out;
  if (what == "fence" || what == "quiet") {
    out.op = what == "fence" ? Op::kOrderPuts : Op::kAwaitPuts;
    return emit(out);
  }
  const bool put = what == "put" || what == "put_nbi" || what == "put_signal" || what == "put_signal_nbi";
  if (!put && what != "p" && what != "signal" && what != "wait") {
    static const std::string kKnown[] = {"put",    "put_nbi", "put_signal", "put_signal_nbi", "p",
                                         "signal", "wait",    "fence",      "quiet"};
    return error_at(*mnemonic_, "'" + printable(mnemonic_->text) + "' is not known",
                    did_you_mean(what, kKnown));
  }
  Result<int> target = address_operand();
  if (!target) return target.error();
  out.address = *target;
  if (Status status = expect(",", "after the first operand"); !status) return status;
  if (put) {
    Result<int> source = address_operand();
    if (!source) return source.error();
    out.op = Op::kPut;
    out.source = *source;
    out.blocking = !what.ends_with("_nbi");
    if (what.starts_with("put_signal")) {
      if (Status status = expect(",", "before the signal"); !status) return status;
      Result<int> signal = address_operand();
      if (!signal) return signal.error();
      if (Status status = expect(",", "before the signal's value"); !status) return status;
      out.signal = *signal;
    } else {
      return emit(out);
    }
  }
  Result<Operand> value = operand();
  if (!value) return value.error();
  out.a = *value;
  if (what == "wait") {
    out.strong = out.acquire = true;
    out.scope = Scope::kSys;
    return spin(out, Compare::kGe, out.a);
  }
  if (what == "p") out.op = Op::kPut;
  if (what == "signal") out.op = Op::kSignal;
  return emit(out);
}

// multimem.st.ORDER m, VALUE; multimem.red.ORDER.OP m, VALUE; multimem.ld_reduce.ORDER.add rD, m: the
// operation on every replica, each through the multicast address.
Status Parser::multimem(const std::vector<std::string>& parts) {
  const std::string what = parts.size() > 1 ? parts[1] : "";
  Instruction out;
  std::size_t from = 2;
  const char* allowed = what == "st"          ? "weak relaxed release"
                        : what == "red"       ? "relaxed release"
                        : what == "ld_reduce" ? "weak relaxed acquire"
                                              : nullptr;
  if (allowed == nullptr) return error_at(*mnemonic_, "multimem wants .st, .red or .ld_reduce");
  if (Status status = semantics(parts, from, allowed, out); !status) return status;
  if (what != "st") {
    if (from >= parts.size() || parts[from] != "add")
      return error_at(*mnemonic_, "multimem." + what + " wants .add");
    ++from;
  }
  if (Status status = no_more(parts, from); !status) return status;
  int sum = -1;
  if (what == "ld_reduce") {
    Result<int> reg = register_operand();
    if (!reg) return reg.error();
    sum = *reg;
    if (Status status = expect(",", "after the register"); !status) return status;
  }
  const Token name = take();
  const auto replicas = multicast_.find(name.text);
  if (replicas == multicast_.end()) {
    return error_at(name, "'" + printable(name.text) + "' is no multicast address",
                    "m @ multicast aliases x, y;");
  }
  if (what != "ld_reduce") {
    if (Status status = next_operand("after the address", out.a); !status) return status;
  }
  out.op = what == "st" ? Op::kStore : what == "red" ? Op::kAtomic : Op::kLoad;
  std::vector<int> loaded;
  for (const int replica : replicas->second) {
    out.address = replica;
    if (what == "ld_reduce") loaded.push_back(out.destination = hidden_register());
    if (Status status = emit(out); !status) return status;
  }
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    Instruction add;
    add.op = i == 0 ? Op::kMove : Op::kArithmetic;
    add.destination = sum;
    add.a.reg = i == 0 ? loaded[0] : sum;
    add.b.reg = i == 0 ? -1 : loaded[i];
    if (Status status = emit(add); !status) return status;
  }
  return {};
}

}  // namespace echolo::litmus
