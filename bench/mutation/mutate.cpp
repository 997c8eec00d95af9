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

  // The body of the host function around token i: main, or one of a candidate's. Other functions may be
  // called from anywhere, so that nothing is known of what came before.
  std::optional<std::size_t> host_body(std::size_t i) const {
    int depth = 0;
    for (std::size_t k = i; k-- > 0;) {
      if (source_.is(k, "}")) ++depth;
      if (!source_.is(k, "{") || --depth >= 0) continue;
      depth = 0;
      if (k == 0 || !source_.is(k - 1, ")")) continue;
      std::size_t open = k - 1;
      for (int parens = 0; open > 0; --open) {
        if (source_.is(open, ")")) ++parens;
        if (source_.is(open, "(") && --parens == 0) break;
      }
      if (open == 0) return std::nullopt;
      const std::string& name = source_.token(open - 1).text;
      if (name == "main" || name.starts_with("candidate_")) return k;
    }
    return std::nullopt;
  }

  bool is_call(std::size_t k) const {
    return source_.token(k).kind == TokenKind::kIdentifier &&
           (source_.is(k + 1, "(") || source_.is(k + 1, "<<<") || source_.is(k + 1, "<"));
  }

  // Calls of the host that start nothing and touch no memory that a peer can see.
  bool is_local(std::size_t k, std::size_t body) const {
    static const std::regex pattern(
        "nvshmem_(init|my_pe|n_pes|malloc|calloc|align|ptr)|cudaMalloc|cudaFree|cudaFreeHost|cudaSetDevice|"
        "cudaGetDevice|cudaDeviceGetAttribute|cudaOccupancy[A-Za-z]+|cudaStream(Create|Destroy)[A-Za-z]*|"
        "cudaEvent(Create|Destroy)[A-Za-z]*|static_cast|reinterpret_cast|sizeof|param|atoi|int64_t|if|for");
    const std::string& name = source_.token(k).text;
    if (std::regex_match(name, pattern)) return true;
    if (name != "cudaMemset") return false;
    // Of memory that this function itself has from cudaMalloc.
    for (std::size_t m = body; m + 3 < k; ++m) {
      if (source_.is(m, "cudaMalloc") && source_.is(m + 2, "&") && source_.is(k + 3, ",") &&
          source_.is(m + 4, ",") && source_.token(m + 3).text == source_.token(k + 2).text)
        return true;
    }
    return false;
  }

  // A call whose deletion weakens nothing: the host waits for the device before anything was started (a
  // candidate's functions are called when their stream is idle), or meets its peers where allocating,
  // freeing or finalising does so anyway and only local things happen between.
  bool waits_for_nothing(std::size_t i, std::size_t close) const {
    static const std::regex device("cudaDeviceSynchronize|cudaStreamSynchronize");
    static const std::regex meeting("nvshmem_(barrier|sync)_all");
    const std::string& name = source_.token(i).text;
    const bool waits = std::regex_match(name, device);
    if (!waits && !std::regex_match(name, meeting)) return false;
    const std::optional<std::size_t> body = host_body(i);
    if (!body) return false;
    if (waits) {
      for (std::size_t k = *body; k < i; ++k) {
        if (is_call(k) && (!is_local(k, *body) || source_.is(k, "cudaMemset"))) return false;
      }
      return true;
    }
    static const std::regex collective("nvshmem_(malloc|calloc|align|free|finalize|barrier_all)");
    for (std::size_t k = i; k-- > *body;) {
      if (!is_call(k)) continue;
      if (std::regex_match(source_.token(k).text, collective)) return true;
      if (!is_local(k, *body)) break;
    }
    for (std::size_t k = close; k < source_.tokens().size() && !source_.is(k, "}"); ++k) {
      if (!is_call(k)) continue;
      if (std::regex_match(source_.token(k).text, collective)) return true;
      if (!is_local(k, *body)) break;
    }
    return false;
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
    if (statement && only_synchronises(name) && !waits_for_nothing(i, *close))
      add("delete-call", from, to, "");
    if (name == "__threadfence_system") add("narrow-scope", from, from + name.size(), "__threadfence");
    if (name == "__threadfence") add("narrow-scope", from, from + name.size(), "__threadfence_block");
    static const std::regex system_atomic("(atomic[A-Za-z]+)_system");
    std::smatch match;
    if (std::regex_match(name, match, system_atomic)) add("narrow-scope", from, from + name.size(), match[1]);
    if (statement) split_put(i, *close);
    wait_for_less(i, *close);
    if (statement && (name == "cudaMemset" || name == "cudaMemsetAsync")) {
      const std::vector<std::string> a = source_.arguments(i + 1, *close);
      if (a.size() >= 3 && a[1] == "0" && is_flag(a[0])) add("drop-reset", from, to, "");
    }
  }

  // By its name something that others wait for, or count.
  static bool is_flag(const std::string& name) {
    static const std::regex flag(
        ".*(flag|signal|count|ready|arriv|sense|ticket|turn|call|credit|(^|[^b])lock|(^|[^t])here|_in$|boxes)"
        ".*",
        std::regex::icase);
    return std::regex_match(name, flag);
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
          std::size_t end = k + 2;  // calls on a stream have it as one more argument
          for (int parens = 0; end < close && (parens > 0 || !source_.is(end, ",")); ++end) {
            if (source_.is(end, "(") || source_.is(end, "[")) ++parens;
            if (source_.is(end, ")") || source_.is(end, "]")) --parens;
          }
          const std::string value = Source::folded(source_.between(source_.begin(k + 2), source_.begin(end)));
          if (source_.is(k, "NVSHMEM_CMP_GE")) {
            add("wait-for-less", source_.begin(k + 2), source_.begin(end), "(" + value + ") - 1");
          }
          return;
        }
      }
    }
    // while (load(flag) < value), do { asm("ld.acquire ...") } while (seen < value)
    if (name != "while") return;
    const bool polls = ends_a_polling_loop(i);
    int depth = 0;
    for (std::size_t k = i + 1; k < close; ++k) {
      if (source_.is(k, "(")) ++depth;
      if (source_.is(k, ")")) --depth;
      if (depth == 1 && source_.is(k, "<") && (source_.is(k - 1, ")") || polls)) {
        const std::string value = Source::folded(source_.between(source_.begin(k + 1), source_.begin(close)));
        add("wait-for-less", source_.begin(k + 1), source_.begin(close), "(" + value + ") - 1");
        return;
      }
    }
  }

  // do { ... an asm with a strong load ... } while
  bool ends_a_polling_loop(std::size_t i) const {
    if (i == 0 || !source_.is(i - 1, "}")) return false;
    int depth = 0;
    bool loads = false;
    for (std::size_t k = i; k-- > 0;) {
      if (source_.is(k, "}")) ++depth;
      if (source_.token(k).kind == TokenKind::kString) {
        const std::string& text = source_.token(k).text;
        loads = loads || text.find("ld.acquire") != std::string::npos ||
                text.find("ld.relaxed") != std::string::npos || text.find("ld.volatile") != std::string::npos;
      }
      if (source_.is(k, "{") && --depth == 0) return loads && k > 0 && source_.is(k - 1, "do");
    }
    return false;
  }

  // NAME = 0; NAME[...] = 0; *NAME = 0; of something that by its name is a flag or a counter.
  void reset(std::size_t i) {
    if (!is_flag(source_.token(i).text)) return;
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
    static const std::regex synchronising(
        "\\b(ld|st|atom|red|fence|membar|mbarrier|barrier|bar|multimem|cp)\\.");
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
