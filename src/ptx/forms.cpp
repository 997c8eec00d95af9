#include "ptx/forms.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/text.hpp"
#include "ptx/modifiers.hpp"

namespace echolo::ptx {
namespace {

struct FormSource {
  std::string_view prefix, modifiers;
  int min_types, max_types;
  std::string_view operands;
};

constexpr FormSource kForms[] = {
#define ECHOLO_PTX_FORM(prefix, modifiers, min_types, max_types, operands) \
  {prefix, modifiers, min_types, max_types, operands},
#include "ptx/forms.def"
#undef ECHOLO_PTX_FORM
};

struct TableEntry {
  Form form;
  std::vector<std::string_view> prefix_words;  // without the mnemonic
  std::unordered_map<std::string_view, Action> words;
  int min_types = 0, max_types = 0;
  bool shape = false;
  bool destination_is_read = false;
};

std::vector<std::string_view> words_of(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void add_word(TableEntry& entry, std::string_view spec) {
  if (spec[0] == '@') {
    const std::string_view group = spec.substr(1);
    const std::span<const std::string_view> words = group_words(group);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::optional<Action> action = group_action(group, i);
      if (action) {
        entry.words[words[i]] = *action;
      } else {
        add_word(entry, words[i]);
      }
    }
    return;
  }
  if (spec == "shape") {
    entry.shape = true;
    return;
  }
  const std::size_t colon = spec.find(':');
  const std::string_view head = spec.substr(0, colon);
  if (colon != std::string_view::npos && (head == "sub" || head == "mode")) {
    const std::string_view word = spec.substr(colon + 1);
    entry.words[word] = head == "sub" ? sub_op_action(word) : Action{Field::kMode, 0};
    return;
  }
  entry.words[spec] = default_action(spec);
}

TableEntry compile_form(const FormSource& source) {
  TableEntry entry;
  entry.form.prefix = source.prefix;
  entry.form.video = source.prefix.starts_with("v") && source.prefix != "vote";
  entry.prefix_words = words_of(source.prefix, '.');
  entry.prefix_words.erase(entry.prefix_words.begin());
  entry.min_types = source.min_types;
  entry.max_types = source.max_types;
  for (const std::string_view word : words_of(source.modifiers, ' ')) add_word(entry, word);
  if (source.max_types > 0) {
    for (int i = 1; i <= static_cast<int>(kLastType); ++i) {
      entry.words.try_emplace(name_of(static_cast<Type>(i)),
                              Action{Field::kType, static_cast<std::uint8_t>(i)});
    }
  }
  for (const char c : source.operands) {
    if (c == '!') {
      entry.destination_is_read = true;
    } else if (c == '?') {
      entry.form.operands.back().optional = true;
    } else if (c == '*') {
      entry.form.more = true;
    } else {
      entry.form.operands.push_back({c, false});
      entry.form.takes_label = entry.form.takes_label || c == 'l';
    }
  }
  entry.form.max_operands = entry.form.operands.size();
  entry.form.min_operands =
      static_cast<std::size_t>(std::ranges::count(entry.form.operands, false, &OperandRule::optional));
  return entry;
}

struct Mnemonic {
  Opcode op{};
  std::vector<TableEntry> forms;  // longest prefix first
};

using Table = std::unordered_map<std::string_view, Mnemonic>;

const Table& table() {
  static const Table built = [] {
    Table mnemonics;
#define ECHOLO_PTX_OPCODE(enumerator, text) mnemonics[text].op = Opcode::enumerator;
#include "ptx/opcodes.def"
#undef ECHOLO_PTX_OPCODE
    for (const FormSource& source : kForms) {
      mnemonics[source.prefix.substr(0, source.prefix.find('.'))].forms.push_back(compile_form(source));
    }
    for (auto& [name, mnemonic] : mnemonics) {
      std::ranges::stable_sort(mnemonic.forms, std::ranges::greater{},
                               [](const TableEntry& entry) { return entry.prefix_words.size(); });
    }
    return mnemonics;
  }();
  return built;
}

bool starts_with(std::span<const std::string_view> words, const std::vector<std::string_view>& prefix) {
  return words.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), words.begin());
}

std::string dotted(std::string_view mnemonic, std::span<const std::string_view> modifiers) {
  std::string text(mnemonic);
  for (const std::string_view word : modifiers) text.append(".").append(word);
  return text;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  return word.size() > 40 ? std::string() : did_you_mean(word, known);
}

FormError unknown_modifier(const TableEntry& entry, std::string_view word) {
  std::vector<std::string> known;
  for (const auto& [name, action] : entry.words) known.emplace_back(name);
  std::ranges::sort(known);
  return {"'." + printable(word) + "' is not a modifier of '" + std::string(entry.form.prefix) + "'",
          suggestion(word, known)};
}

const TableEntry* choose_form(const Mnemonic& mnemonic, std::span<const std::string_view> modifiers) {
  for (const TableEntry& entry : mnemonic.forms) {
    if (starts_with(modifiers, entry.prefix_words)) return &entry;
  }
  return nullptr;
}

FormError no_such_form(std::string_view name, const Mnemonic& mnemonic,
                       std::span<const std::string_view> modifiers) {
  std::vector<std::string> known;
  for (const TableEntry& entry : mnemonic.forms) known.emplace_back(entry.form.prefix);
  std::ranges::sort(known);
  return {"'" + printable(dotted(name, modifiers)) + "' is no form of '" + std::string(name) + "'",
          "the forms are " + join(known, ", ")};
}

void imply_fields(Instruction& instruction) {
  const Opcode op = instruction.op;
  if (op == Opcode::kBar && instruction.mode != "warp") instruction.aligned = true;
  if (op == Opcode::kAddc || op == Opcode::kSubc || op == Opcode::kMadc) instruction.carry_in = true;
}

}  // namespace

std::optional<Opcode> find_opcode(std::string_view name) {
  const auto found = table().find(name);
  if (found == table().end()) return std::nullopt;
  return found->second.op;
}

std::optional<CompiledOpcode> compile_opcode(std::string_view name,
                                             std::span<const std::string_view> modifiers, FormError& error) {
  const auto found = table().find(name);
  if (found == table().end()) {
    std::vector<std::string> known;
    for (const auto& [text, mnemonic] : table()) known.emplace_back(text);
    std::ranges::sort(known);
    error = {"'" + printable(name) + "' is no PTX instruction known for sm_90a", suggestion(name, known)};
    return std::nullopt;
  }
  const TableEntry* entry = choose_form(found->second, modifiers);
  if (entry == nullptr) {
    error = no_such_form(name, found->second, modifiers);
    return std::nullopt;
  }

  CompiledOpcode compiled;
  compiled.form = &entry->form;
  Instruction& fields = compiled.fields;
  fields.op = found->second.op;
  int n_types = 0;
  for (std::size_t i = 0; i < modifiers.size(); ++i) {
    const std::string_view word = modifiers[i];
    const auto action = entry->words.find(word);
    if (action != entry->words.end()) {
      if (action->second.field == Field::kType && n_types++ >= entry->max_types) {
        error = {
            "'." + printable(word) + "' is one type too many for '" + std::string(entry->form.prefix) + "'",
            ""};
        return std::nullopt;
      }
      apply(action->second, word, fields);
    } else if (i < entry->prefix_words.size()) {
      apply(default_action(word), word, fields);
    } else if (!entry->shape || !apply_shape(word, fields.shape)) {
      error = unknown_modifier(*entry, word);
      return std::nullopt;
    }
    fields.modifiers.push_back(word);
  }
  if (n_types < entry->min_types) {
    const std::string needs = entry->min_types == 1
                                  ? "a type, such as .b32"
                                  : std::to_string(entry->min_types) + " types, such as .f32.s32";
    error = {"'" + printable(dotted(name, modifiers)) + "' needs " + needs, ""};
    return std::nullopt;
  }
  fields.destination_is_read = entry->destination_is_read;
  imply_fields(fields);
  return compiled;
}

}  // namespace echolo::ptx
