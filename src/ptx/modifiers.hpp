// What a modifier word does to an Instruction; the vocabulary that forms.def is written in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ptx/module.hpp"

namespace echolo::ptx {

inline constexpr Type kLastType = Type::kUe8m0x2;

enum class Field : std::uint8_t {
  kNothing,  // only kept in Instruction::modifiers
  kType,
  kSpace,
  kOrder,
  kScope,
  kRounding,
  kCompare,
  kBoolOp,
  kMulMode,
  kSubOp,
  kMode,
  kVector,
  kCount,
  kRow,
  kColumn,
  kTrans,
  kSparse,
  kFtz,
  kSat,
  kRelu,
  kApprox,
  kFull,
  kNoftz,
  kTo,
  kUniform,
  kSync,
  kAligned,
  kAsync,
  kBulk,
  kTensor,
  kMulticast,
  kNoinc,
  kBytemask,
  kNonCoherent,
  kNanPropagate,
  kXorsign,
  kProxy,
  kCarryOut,
};

struct Action {
  Field field = Field::kNothing;
  std::uint8_t value = 0;  // the enumerator, or the number of .v2 or .x4
};

// The words of a group of forms.def, as they would be written there.
std::span<const std::string_view> group_words(std::string_view group);
// In groups whose words mean something else elsewhere (@compare, @bool, @mul): what word number `index` does
// there.
std::optional<Action> group_action(std::string_view group, std::size_t index);
// What a word does where the form says nothing else.
Action default_action(std::string_view word);
Action sub_op_action(std::string_view word);

void apply(Action action, std::string_view word, Instruction& instruction);
// "m16n8k16", "m8n8"; false where the word is no shape.
bool apply_shape(std::string_view word, MatrixShape& shape);

}  // namespace echolo::ptx
