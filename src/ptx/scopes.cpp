#include "ptx/scopes.hpp"

#include <charconv>

namespace echolo::ptx {

std::optional<Symbol> Block::find(std::string_view name) const {
  if (!names_.empty()) {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
  }
  if (sets_.empty()) return std::nullopt;
  // A set's prefix may itself end in digits (%r1<3> declares %r10 to %r12), so try every split, longest
  // prefix first.
  for (std::size_t split = name.size() - 1; split > 0 && name.size() - split <= 10; --split) {
    if (name[split] < '0' || name[split] > '9') break;
    if (name[split] == '0' && split + 1 < name.size()) continue;  // %r05 is not %r5
    const auto set = sets_.find(name.substr(0, split));
    if (set == sets_.end()) continue;
    std::int32_t number = -1;
    const auto [end, error] = std::from_chars(name.data() + split, name.data() + name.size(), number);
    if (error == std::errc() && number < set->second.count) {
      return Symbol{SymbolKind::kRegister, set->second.index + number, 1};
    }
  }
  return std::nullopt;
}

}  // namespace echolo::ptx
