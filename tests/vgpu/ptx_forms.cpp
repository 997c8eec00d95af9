#include "ptx_forms.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "vgpu/core/image.hpp"

namespace echolo::vgpu::ptx_forms {
namespace {

// Every (a|b|) replaced by each of its alternatives in turn.
void expand(const std::string& text, std::vector<std::string>& out) {
  const std::size_t open = text.find('(');
  if (open == std::string::npos) {
    out.push_back(text);
    return;
  }
  const std::size_t close = text.find(')', open);
  if (close == std::string::npos) throw std::runtime_error("no ')' in " + text);
  for (std::size_t at = open + 1; at <= close;) {
    const std::size_t end = std::min(text.find('|', at), close);
    expand(text.substr(0, open) + text.substr(at, end - at) + text.substr(close + 1), out);
    at = end + 1;
  }
}

// {%r2..5} is {%r2, %r3, %r4, %r5}.
std::string with_vectors(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return text;
  const std::size_t open = text.rfind('{', dots), close = text.find('}', dots);
  if (open == std::string::npos || close == std::string::npos) throw std::runtime_error("'..' in " + text);
  std::size_t digit = open + 1;
  while (digit < dots && (text[digit] < '0' || text[digit] > '9')) ++digit;
  const std::string name = text.substr(open + 1, digit - open - 1);
  const int first = std::stoi(text.substr(digit, dots - digit));
  const int last = std::stoi(text.substr(dots + 2, close - dots - 2));
  std::string vector = "{";
  for (int i = first; i <= last; ++i) vector += (i == first ? "" : ", ") + name + std::to_string(i);
  return text.substr(0, open) + vector + with_vectors(text.substr(close));
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

void read_list(const std::filesystem::path& path, std::vector<Section>& sections) {
  std::ifstream file(path);
  bool begun = false;
  for (std::string raw; std::getline(file, raw);) {
    const std::string text = trimmed(raw);
    if (text.empty() || text[0] == '#') continue;
    if (text.starts_with("==")) {
      const std::size_t bar = text.find('|');
      if (bar == std::string::npos) throw std::runtime_error("a section without a test: " + text);
      const std::size_t second = std::min(text.find('|', bar + 1), text.size());
      sections.push_back({trimmed(text.substr(2, bar - 2)),
                          trimmed(text.substr(bar + 1, second - bar - 1)),
                          second < text.size(),
                          {}});
      begun = true;
      continue;
    }
    if (!begun) throw std::runtime_error("a form before the first section of " + path.string());
    Line line{text, {}};
    std::vector<std::string> forms;
    expand(text, forms);
    for (const std::string& form : forms) line.forms.push_back(with_vectors(form));
    sections.back().lines.push_back(std::move(line));
  }
}

}  // namespace

std::vector<Section> read_lists() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ECHOLO_SOURCE_DIR) + "/tests/vgpu/ptx_forms")) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Section> sections;
  for (const auto& path : paths) read_list(path, sections);
  return sections;
}

std::string module_of(const std::string& instruction) {
  return ".version 9.2\n.target sm_90a\n.address_size 64\n.visible .func f() { ret; }\n"
         ".global .align 64 .b8 g[256];\n.shared .align 128 .b8 s[256];\n"
         ".visible .entry k(.param .u64 p)\n{\n"
         ".reg .pred %p<8>;\n.reg .b16 %rs<16>;\n.reg .b32 %r<32>;\n.reg .f32 %f<8>;\n.reg .b64 %rd<24>;\n"
         ".reg .f64 %fd<8>;\n.reg .b128 %q<4>;\n" +
         instruction + ";\nL:\nret;\n}\n";
}

std::string refusal(const std::string& instruction) {
  const Result<std::shared_ptr<Program>> program = decode_program(module_of(instruction), "form", nullptr);
  return program.ok() ? std::string() : program.error().message;
}

}  // namespace echolo::vgpu::ptx_forms
