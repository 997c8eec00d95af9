// Names inside a function body: nested blocks `{ ... }`, each with registers, variables and labels of its own
// (PTX ISA section 4.4, and 7.1 for call sequences).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace echolo::ptx {

enum class SymbolKind : std::uint8_t {
  kRegister,
  kVectorRegister,  // .reg .v4: index is the first of `count` registers
  kVariable,        // index as Operand::variable
  kFunction,
  kPrototype,  // index into Function::prototypes
};

struct Symbol {
  SymbolKind kind = SymbolKind::kRegister;
  std::int32_t index = -1;
  std::int32_t count = 1;
};

// A use of a label before it is known where it stands.
struct LabelUse {
  std::string_view name;
  std::int32_t line = 0;
  std::int32_t instruction = -1;
  std::int32_t operand = -1;  // index into operands
};

class Block {
 public:
  // False where the name is taken in this very scope.
  bool declare(std::string_view name, Symbol symbol) { return names_.try_emplace(name, symbol).second; }
  bool declare_set(std::string_view prefix, std::int32_t first, std::int32_t count) {
    return sets_.try_emplace(prefix, Symbol{SymbolKind::kRegister, first, count}).second;
  }
  std::optional<Symbol> find(std::string_view name) const;

  struct Table {
    std::vector<std::string_view> names;
    std::int32_t line = 0;
  };
  std::unordered_map<std::string_view, std::int32_t> labels;  // index of the instruction that follows
  std::unordered_map<std::string_view, Table> tables;         // .branchtargets
  std::vector<LabelUse> uses;

 private:
  std::unordered_map<std::string_view, Symbol> names_;
  std::unordered_map<std::string_view, Symbol> sets_;  // %r<20> under "%r"
};

}  // namespace echolo::ptx
