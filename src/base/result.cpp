#include "base/result.hpp"

namespace echolo {

std::string Error::render() const {
  std::string out;
  if (!file.empty()) {
    out += file;
    if (line > 0) out += ":" + std::to_string(line);
    if (line > 0 && column > 0) out += ":" + std::to_string(column);
    out += ": ";
  }
  out += message;
  if (!hint.empty()) out += "\n  hint: " + hint;
  return out;
}

Error usage_error(std::string message, std::string hint) {
  Error error;
  error.message = std::move(message);
  error.hint = std::move(hint);
  return error;
}

Error machine_error(std::string message, std::string hint) {
  Error error = usage_error(std::move(message), std::move(hint));
  error.kind = ErrorKind::kMachine;
  return error;
}

Error input_error(std::string file, int line, std::string message, std::string hint, int column) {
  Error error = usage_error(std::move(message), std::move(hint));
  error.file = std::move(file);
  error.line = line;
  error.column = column;
  return error;
}

}  // namespace echolo
