// What a source's #define lines can do, as far as gates need to know.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "judge/tokens.hpp"

namespace echolo::judge {

struct Directive {
  std::string name;  // "define", "include", ...; empty for a lone #
  int line = 0, column = 0;
  std::vector<Token> words;  // what follows the name
};

struct Macro {
  Directive directive;
  std::string name;
  bool function_like = false;
  std::vector<std::string> parameters;  // "..." as "__VA_ARGS__"
  std::vector<Token> body;
};

struct MacroTable {
  std::vector<Macro> macros;  // every #define, in order
  std::set<std::string, std::less<>>
      bearing_assembly;  // names that expand to asm, directly or through others
  // Names that mean __device__ or __global__ in every definition they have, and nothing that ends a
  // declaration.
  std::set<std::string, std::less<>> device_qualifiers;
  // Names that hold something that ends a declaration or opens a body, or say __host__.
  std::set<std::string, std::less<>> opaque;
};

std::vector<Directive> directives_of(const std::vector<Token>& tokens);
MacroTable read_macros(const std::vector<Directive>& directives);

bool is_assembly_word(std::string_view word);

// The words that `macro` might paste together with ## and that a gate looks for: one of them, or empty. A
// parameter may be anything, so a paste of two parameters may be every word.
std::string dangerous_paste(const Macro& macro);

}  // namespace echolo::judge
