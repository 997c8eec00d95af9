// The parser's state, shared by its parts: parser.cpp (initial values, threads, the table), instructions.cpp
// (one instruction), condition.cpp (the question).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "litmus/lexer.hpp"
#include "litmus/program.hpp"

namespace echolo::litmus {

// What a hostile text can ask for.
inline constexpr std::size_t kMaxText = 1 << 20;
inline constexpr int kMaxThreads = 16;
inline constexpr int kMaxInstructions = 400;  // of a thread
inline constexpr int kMaxLocations = 64;
inline constexpr int kMaxConditionDepth = 100;

class Parser {
 public:
  Parser(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {}
  Result<Program> parse();

 private:
  struct Label {
    int thread;
    std::string name;
    bool operator<(const Label& other) const {
      return thread != other.thread ? thread < other.thread : name < other.name;
    }
  };
  struct Jump {
    int thread, instruction;
    std::string label;
    int line, column;
  };

  // parser.cpp
  Status header();
  Status initial_values();
  Status initial_value();
  Status thread_register(int id, const Token& at);
  Status alias(const Token& name);
  Status multicast(const Token& name);
  Status threads();
  Status placement(Thread& thread);
  Status table();
  Status cell(int thread);
  Status resolve_labels();
  Status observed_list();

  // instructions.cpp: the cell's tokens from the mnemonic on
  Status instruction(int thread);
  Status load(const std::vector<std::string>& parts, model::Proxy proxy);
  Status store(const std::vector<std::string>& parts, model::Proxy proxy);
  Status atomic(const std::vector<std::string>& parts, model::Proxy proxy, bool has_destination);
  Status fence(const std::vector<std::string>& parts);
  Status membar(const std::vector<std::string>& parts);
  Status barrier(const std::vector<std::string>& parts);
  Status branch(Compare how);
  Status arithmetic(Arithmetic how);
  // extensions.cpp: asynchronous copies, mbarrier, NVSHMEM, multimem
  Status mbarrier(const std::vector<std::string>& parts);
  Status async_copy(const std::vector<std::string>& parts);
  Status nvshmem(const std::vector<std::string>& parts);
  Status multimem(const std::vector<std::string>& parts);
  Status spin(Instruction load, Compare until, Operand bound);

  // The memory order and scope that `parts[from]` on name; `from` ends behind them.
  Status semantics(const std::vector<std::string>& parts, std::size_t& from, const std::string& allowed,
                   Instruction& out);
  Status no_more(const std::vector<std::string>& parts, std::size_t from);
  Result<Operand> operand();
  // A comma, which must stand `where`, and the operand behind it.
  Status next_operand(const char* where, Operand& out);
  Result<int> address_operand();
  Result<int> register_operand();
  Status emit(Instruction instruction);
  int hidden_register();

  // condition.cpp
  Status question();
  Result<Condition> disjunction(int depth);
  Result<Condition> conjunction(int depth);
  Result<Condition> unit(int depth);
  Result<Term> term();
  Result<Compare> comparison();

  const Token& peek(int ahead = 0) const {
    const std::size_t i = at_ + static_cast<std::size_t>(ahead);
    return i < tokens_.size() ? tokens_[i] : tokens_.back();
  }
  const Token& take() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is(const char* text, int ahead = 0) const {
    return peek(ahead).text == text && peek(ahead).kind != TokenKind::kEnd;
  }
  bool accept(const char* text) {
    if (!is(text)) return false;
    take();
    return true;
  }
  Status expect(const char* text, const char* where);
  Error error_at(const Token& token, const std::string& message, const std::string& hint = {}) const {
    return input_error(file_, token.line, message, hint, token.column);
  }
  Result<std::int64_t> number();
  Result<int> thread_reference();  // "P1" or "1": an index into program_.threads
  int location(const std::string& name) const;
  int address(const std::string& name) const;
  int register_in(int thread, const std::string& name);
  Status add_location(const Token& name, std::int64_t initial);

  const std::string& text_;
  std::string file_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Program program_;
  int thread_ = 0;  // whose instruction is being parsed
  const Token* mnemonic_ = nullptr;
  std::map<Label, int> labels_;
  std::vector<Jump> jumps_;
  struct InitialRegister {
    int id;
    std::string name;
    std::int64_t value;
    Token at;
  };
  std::vector<InitialRegister> initial_registers_;
  std::map<std::string, std::vector<int>> multicast_;    // name -> addresses, one a replica
  std::map<std::string, int> same_address_;              // names of other proxies -> address
  std::map<std::string, std::int64_t> mbarrier_counts_;  // arrivals that complete a phase
};

bool is_register_name(const std::string& text);

}  // namespace echolo::litmus
