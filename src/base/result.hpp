// Expected failures are values. A Result<T> holds either a T or an Error whose message a user can act on;
// exceptions are left for bugs.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace echolo {

// Whose fault an error is; decides the command line's exit code (docs/architecture.md, "Exit codes").
enum class ErrorKind {
  kUsage,        // bad usage or bad input: exit 2
  kJudgement,    // the judge says no: exit 1
  kMachine,      // something the machine lacks (compiler, disk, sandbox): exit 3
  kInterrupted,  // Ctrl-C: exit 130
};

struct Error {
  ErrorKind kind = ErrorKind::kUsage;
  std::string message;  // one sentence, lower case, no trailing full stop
  std::string hint;     // what to do about it; may be empty
  std::string file;     // where in the user's input; may be empty
  int line = 0;         // 1-based; 0 when unknown
  int column = 0;       // 1-based; 0 when unknown

  // "file:line:column: message" and, where there is one, a second line "  hint: ...".
  std::string render() const;
};

Error usage_error(std::string message, std::string hint = {});
Error machine_error(std::string message, std::string hint = {});
Error input_error(std::string file, int line, std::string message, std::string hint = {}, int column = 0);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)  // NOLINT(google-explicit-constructor): `return value;` is what it is for
      : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// The Result of something that yields nothing. `return {};` means success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace echolo
