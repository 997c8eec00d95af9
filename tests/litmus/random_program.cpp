#include "random_program.hpp"

#include <vector>

#include "base/rng.hpp"

namespace echolo::litmus::testing {
namespace {

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : rng_(seed) {}

  std::string write() {
    const std::uint64_t threads = 2 + rng_.below(2);
    const std::uint64_t locations = 1 + rng_.below(2);
    proxies_ = rng_.below(3) == 0;
    barriers_ = rng_.below(5) == 0;
    agents_ = !proxies_ && locations > 1 && rng_.below(4) == 0;
    for (std::uint64_t i = 0; i < locations; ++i)
      names_.push_back(std::string(1, static_cast<char>('x' + i)));
    std::string init;
    for (const std::string& name : names_) init += name + "=0;\n";
    if (proxies_) {
      init += "a @ generic aliases x;\n";
      names_.emplace_back("a");
    }
    std::vector<std::vector<std::string>> columns(threads);
    std::size_t rows = 0;
    std::string header;
    for (std::uint64_t t = 0; t < threads; ++t) {
      reads_ = 0;
      const std::uint64_t length = 2 + rng_.below(threads == 2 ? 3 : 2);
      for (std::uint64_t i = 0; i < length; ++i) columns[t].push_back(instruction());
      rows = std::max(rows, columns[t].size());
      header += (t == 0 ? " P" : " | P") + std::to_string(t) + "@cta " + std::to_string(rng_.below(2)) +
                ",gpu " + std::to_string(rng_.below(4) == 0 ? 1 : 0);
      for (int r = 0; r < reads_; ++r) observed_ += "P" + std::to_string(t) + ":r" + std::to_string(r) + "; ";
    }
    std::string body;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::uint64_t t = 0; t < threads; ++t) {
        body += (t == 0 ? " " : " | ") + (row < columns[t].size() ? columns[t][row] : "");
      }
      body += ";\n";
    }
    return "PTX random\n{\n" + init + "}\n" + header + ";\n" + body + "locations [" + observed_ + "x;" +
           (locations > 1 ? " y;" : "") + "]\n";
  }

 private:
  std::string pick(const std::vector<std::string>& from) { return from[rng_.below(from.size())]; }
  std::string scope() { return pick({".cta", ".gpu", ".gpu", ".sys"}); }
  std::string name() { return names_[rng_.below(names_.size())]; }
  std::string result() { return "r" + std::to_string(reads_++); }
  std::string stored() {
    return reads_ > 0 && rng_.below(3) == 0 ? "r" + std::to_string(rng_.below(reads_))
                                            : std::to_string(1 + rng_.below(2));
  }

  std::string instruction() {
    const std::uint64_t kind = rng_.below(16);
    if (barriers_ && rng_.below(4) == 0) return "bar.cta.sync 0";
    if (proxies_ && kind < 5) {
      switch (rng_.below(6)) {
        case 0:
          return "sust.weak " + name() + ", " + stored();
        case 1:
          return loaded("suld.weak ");
        case 2:
          return "fence.proxy.surface";
        case 3:
          return "fence.proxy.alias";
        case 4:
          return loaded("cold.weak ");
        default:
          return "fence.proxy.constant";
      }
    }
    if (agents_ && kind < 6) {
      const std::string to = name(), from = to == "x" ? "y" : "x";
      switch (rng_.below(8)) {
        case 0:
          return "nvshmem.put " + to + ", " + from;
        case 1:
          return "nvshmem.put_nbi " + to + ", " + from;
        case 2:
          return "nvshmem.p " + to + ", " + stored();
        case 3:
          return "nvshmem.signal " + to + ", 1";
        case 4:
          return rng_.below(2) == 0 ? "nvshmem.fence" : "nvshmem.quiet";
        case 5:
          return "cp.async.bulk " + to + ", " + from;
        case 6:
          return "cp.async.bulk.wait";
        default:
          return "fence.proxy.async";
      }
    }
    if (kind < 5)
      return loaded(rng_.below(2) == 0 ? "ld.weak " : pick({"ld.relaxed", "ld.acquire"}) + scope() + " ");
    if (kind < 11) {
      return (rng_.below(2) == 0 ? "st.weak" : pick({"st.relaxed", "st.release"}) + scope()) + " " + name() +
             ", " + stored();
    }
    if (kind < 14) return pick({"fence.sc", "fence.sc", "fence.acq_rel"}) + scope();
    const std::string order = pick({".relaxed", ".acquire", ".release", ".acq_rel"});
    if (rng_.below(4) == 0) return "red" + order + scope() + ".add " + name() + ", 1";
    const std::string operation = pick({"add", "exch", "cas"});
    const std::string atom = "atom" + order + scope() + "." + operation + " ";
    const std::string operand = stored();
    return atom + result() + ", " + name() + ", " + (operation == "cas" ? "0, 2" : operand);
  }
  std::string loaded(const std::string& load) {
    const std::string reg = result();
    return load + reg + ", " + name();
  }

  Rng rng_;
  std::vector<std::string> names_;
  std::string observed_;
  int reads_ = 0;
  bool proxies_ = false, barriers_ = false, agents_ = false;
};

}  // namespace

std::string random_litmus(std::uint64_t seed) { return Writer(seed).write(); }

}  // namespace echolo::litmus::testing
