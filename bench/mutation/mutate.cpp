#include "mutate.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>

#include "judge/tokens.hpp"

namespace echolo::mutation {
namespace {

using judge::Token;
using judge::TokenKind;

// A source with its tokens and where each begins.
class Source {
 public:
  explicit Source(std::string_view text) : text_(text), tokens_(judge::tokenize(text).tokens) {
    lines_.push_back(0);
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\n') lines_.push_back(i + 1);
    }
  }

  const std::vector<Token>& tokens() const { return tokens_; }
  const Token& token(std::size_t i) const { return tokens_[i]; }
  bool is(std::size_t i, std::string_view text) const {
    return i < tokens_.size() && tokens_[i].kind != TokenKind::kString && tokens_[i].text == text;
  }
  std::size_t begin(std::size_t i) const {
    return lines_[static_cast<std::size_t>(tokens_[i].line - 1)] +
           static_cast<std::size_t>(tokens_[i].column - 1);
  }
  std::string_view between(std::size_t from, std::size_t to) const {
    return std::string_view(text_).substr(from, to - from);
  }
  const std::string& text() const { return text_; }

  // The index of the bracket that closes the one at `open`.
  std::optional<std::size_t> closing(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < tokens_.size(); ++i) {
      if (is(i, "(") || is(i, "[") || is(i, "{")) ++depth;
      if (is(i, ")") || is(i, "]") || is(i, "}")) {
        if (--depth == 0) return i;
      }
    }
    return std::nullopt;
  }

  // The text of each argument of the call whose opening bracket is at `open`.
  std::vector<std::string> arguments(std::size_t open, std::size_t close) const {
    std::vector<std::string> result;
    std::size_t from = open + 1;
    int depth = 0;
    for (std::size_t i = open + 1; i <= close; ++i) {
      if (is(i, "(") || is(i, "[") || is(i, "{")) ++depth;
      if (i < close && (is(i, ")") || is(i, "]") || is(i, "}"))) --depth;
      if (i == close || (depth == 0 && is(i, ","))) {
        if (from < i) result.push_back(folded(between(begin(from), begin(i))));
        from = i + 1;
      }
    }
    return result;
  }

  // White space and line ends as one blank, so that a description is one line.
  static std::string folded(std::string_view text) {
    std::string result;
    for (const char c : text) {
      const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\\';
      if (!space) {
        result += c;
      } else if (!result.empty() && result.back() != ' ') {
        result += ' ';
      }
    }
    while (!result.empty() && result.back() == ' ') result.pop_back();
    return result;
  }

 private:
  std::string text_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> lines_;  // where each begins
};

class Mutator {
 public:
  explicit Mutator(std::string_view text) : source_(text) {}

  std::vector<Mutant> run() {
    for (std::size_t i = 0; i < source_.tokens().size(); ++i) {
      if (source_.token(i).in_directive) continue;
      if (source_.token(i).kind == TokenKind::kIdentifier) identifier(i);
      if (source_.token(i).kind == TokenKind::kString) string(i);
    }
    std::stable_sort(mutants_.begin(), mutants_.end(),
                     [](const Mutant& a, const Mutant& b) { return a.line < b.line; });
    return std::move(mutants_);
  }

 private:
  // Replaces the bytes [from, to) by `with`, keeping as many line ends as there were.
  void add(std::string operation, std::size_t from, std::size_t to, std::string with) {
    const std::string_view old = source_.between(from, to);
    Mutant mutant;
    mutant.operation = std::move(operation);
    mutant.before = Source::folded(old);
    mutant.after = with.empty() ? "nothing" : with;
    mutant.line =
        1 + static_cast<int>(std::count(source_.text().begin(),
                                        source_.text().begin() + static_cast<std::ptrdiff_t>(from), '\n'));
    with.append(static_cast<std::size_t>(std::count(old.begin(), old.end(), '\n')), '\n');
    mutant.text = source_.text().substr(0, from) + with + source_.text().substr(to);
    mutants_.push_back(std::move(mutant));
  }

  bool begins_statement(std::size_t i) const {
    return i > 0 && (source_.is(i - 1, ";") || source_.is(i - 1, "{") || source_.is(i - 1, "}") ||
                     source_.is(i - 1, ")") || source_.is(i - 1, "else"));
  }

  static bool only_synchronises(const std::string& name) {
    static const std::regex pattern(
        "__syncthreads|__syncwarp|__threadfence(_block|_system)?|cudaDeviceSynchronize|cudaStreamSynchronize|"
        "cudaEventSynchronize|cudaStreamWaitEvent|nvshmem_(fence|quiet|barrier_all|sync_all|barrier|sync|"
        "team_sync)|"
        "nvshmemx_(fence|quiet|barrier_all|sync_all|barrier|sync)(_on_stream|_block|_warp)*|"
        "nvshmemx?_signal_wait_until(_on_stream)?|nvshmemx_signal_op(_on_stream)?|"
        "nvshmem_[a-z0-9]+_wait_until(_all|_any|_some)?");
    return std::regex_match(name, pattern);
  }

  void identifier(std::size_t i) {
    const std::string& name = source_.token(i).text;
    static const std::regex memory_order("memory_order_(acquire|release|acq_rel|seq_cst)");
    if (std::regex_match(name, memory_order)) {
      add("weaken-order", source_.begin(i), source_.begin(i) + name.size(), "memory_order_relaxed");
    }
    if (name == "thread_scope_system") {
      add("narrow-scope", source_.begin(i), source_.begin(i) + name.size(), "thread_scope_device");
    }
    if (name == "thread_scope_device") {
      add("narrow-scope", source_.begin(i), source_.begin(i) + name.size(), "thread_scope_block");
    }
    if (source_.is(i + 1, "(")) call(i);
    if (name == "sync" && source_.is(i + 1, "(") && i >= 2 &&
        (source_.is(i - 1, ".") || source_.is(i - 1, "->"))) {
      member_sync(i);
    }
    reset(i);
  }

  void member_sync(std::size_t i) {
    const std::optional<std::size_t> close = source_.closing(i + 1);
    if (!close || !source_.is(*close + 1, ";") || !begins_statement(i - 2)) return;
    add("delete-call", source_.begin(i - 2), source_.begin(*close + 1), "");
  }

  void call(std::size_t i) {
    const std::string& name = source_.token(i).text;
    const std::optional<std::size_t> close = source_.closing(i + 1);
    if (!close) return;
    const std::size_t from = source_.begin(i);
    const std::size_t to = source_.begin(*close) + 1;
    const bool statement = begins_statement(i) && source_.is(*close + 1, ";");
    if (statement && only_synchronises(name)) add("delete-call", from, to, "");
    if (name == "__threadfence_system") add("narrow-scope", from, from + name.size(), "__threadfence");
    if (name == "__threadfence") add("narrow-scope", from, from + name.size(), "__threadfence_block");
    static const std::regex system_atomic("(atomic[A-Za-z]+)_system");
    std::smatch match;
    if (std::regex_match(name, match, system_atomic)) add("narrow-scope", from, from + name.size(), match[1]);
    if (statement) split_put(i, *close);
    wait_for_less(i, *close);
    if (statement && (name == "cudaMemset" || name == "cudaMemsetAsync")) {
      add("drop-reset", from, to, "");
    }
  }

  // nvshmem[x]_put*_signal*(target, source, n, signal, value, operation, pe)
  void split_put(std::size_t i, std::size_t close) {
    static const std::regex pattern("nvshmemx?_(.*put(?:mem)?)_signal(_nbi)?(_block|_warp)?");
    std::smatch match;
    const std::string name = source_.token(i).text;
    if (!std::regex_match(name, match, pattern)) return;
    const std::vector<std::string> a = source_.arguments(i + 1, close);
    if (a.size() != 7) return;
    const std::string group = match[3];
    const std::string first = group == "_block"  ? "threadIdx.x + threadIdx.y + threadIdx.z == 0"
                              : group == "_warp" ? "threadIdx.x % 32 == 0"
                                                 : "";
    const std::string put = (group.empty() ? "nvshmem_" : "nvshmemx_") + match[1].str() + match[2].str() +
                            group + "(" + a[0] + ", " + a[1] + ", " + a[2] + ", " + a[6] + ")";
    const std::string signal = "nvshmemx_signal_op(" + a[3] + ", " + a[4] + ", " + a[5] + ", " + a[6] + ")";
    add("signal-before-data", source_.begin(i), source_.begin(close) + 1,
        "{ " + (first.empty() ? "" : "if (" + first + ") ") + signal + "; " + put + "; }");
  }

  void wait_for_less(std::size_t i, std::size_t close) {
    const std::string& name = source_.token(i).text;
    if (name.find("wait_until") != std::string::npos) {
      for (std::size_t k = i + 2; k + 1 < close; ++k) {
        if ((source_.is(k, "NVSHMEM_CMP_GE") || source_.is(k, "NVSHMEM_CMP_EQ")) && source_.is(k + 1, ",")) {
          const std::string value =
              Source::folded(source_.between(source_.begin(k + 2), source_.begin(close)));
          if (source_.is(k, "NVSHMEM_CMP_GE")) {
            add("wait-for-less", source_.begin(k + 2), source_.begin(close), "(" + value + ") - 1");
          }
          return;
        }
      }
    }
    // while (load(flag) < value)
    if (name != "while") return;
    int depth = 0;
    for (std::size_t k = i + 1; k < close; ++k) {
      if (source_.is(k, "(")) ++depth;
      if (source_.is(k, ")")) --depth;
      if (depth == 1 && source_.is(k, "<") && source_.is(k - 1, ")")) {
        const std::string value = Source::folded(source_.between(source_.begin(k + 1), source_.begin(close)));
        add("wait-for-less", source_.begin(k + 1), source_.begin(close), "(" + value + ") - 1");
        return;
      }
    }
  }

  // NAME = 0; NAME[...] = 0; *NAME = 0; of something that by its name is a flag or a counter.
  void reset(std::size_t i) {
    static const std::regex flag(".*(flag|signal|count|ready|arriv|sense|ticket|turn).*", std::regex::icase);
    if (!std::regex_match(source_.token(i).text, flag)) return;
    std::size_t at = i + 1;
    if (source_.is(at, "[")) {
      const std::optional<std::size_t> close = source_.closing(at);
      if (!close) return;
      at = *close + 1;
    }
    if (!source_.is(at, "=") || !source_.is(at + 1, "0") || !source_.is(at + 2, ";")) return;
    std::size_t from = i;
    if (from > 0 && source_.is(from - 1, "*")) --from;
    if (!begins_statement(from)) return;
    add("drop-reset", source_.begin(from), source_.begin(at + 2), "");
  }

  void string(std::size_t i) {
    const std::string& text = source_.token(i).text;
    static const std::regex synchronising("\\b(ld|st|atom|red|fence|membar|mbarrier|barrier|multimem|cp)\\.");
    if (!std::regex_search(text, synchronising)) return;
    const std::size_t from = source_.begin(i);
    static const std::array<std::array<const char*, 3>, 5> edits = {
        {{"narrow-scope", ".sys", ".gpu"},
         {"narrow-scope", ".gpu", ".cta"},
         {"weaken-order", ".acquire", ".relaxed"},
         {"weaken-order", ".release", ".relaxed"},
         {"weaken-order", ".acq_rel", ".relaxed"}}};
    const std::size_t at = source_.text().find(text, from);
    if (at == std::string::npos) return;
    const bool fence = text.find("fence.") != std::string::npos;
    for (const auto& [operation, old, with] : edits) {
      const std::size_t k = text.find(old);
      if (k == std::string::npos || (fence && std::string_view(operation) == "weaken-order")) continue;
      add(operation, at + k, at + k + std::string_view(old).size(), with);
    }
    static const std::regex whole(
        "\\s*(fence|membar|bar\\.sync|barrier\\.|cp\\.async\\.(bulk\\.)?(wait|commit))[^;]*;\\s*");
    if (std::regex_match(text, whole)) {
      add(text.find("cp.async") != std::string::npos ? "drop-wait-group" : "delete-call", at,
          at + text.size(), "// ");
    }
  }

  Source source_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> mutants_of(std::string_view source) { return Mutator(source).run(); }

}  // namespace echolo::mutation
