// A finding as a compiler would print it.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "vgpu/finding.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::size_t kColumns = 110;
constexpr std::size_t kExcerptColumns =
    98;  // of source text, so that a line with its gutter keeps within 110

struct Colours {
  const char* bold = "";
  const char* red = "";
  const char* blue = "";
  const char* green = "";
  const char* off = "";
};

// Untrusted text on one line: control sequences made visible, line breaks and tabs become blanks.
std::string one_line(std::string_view text) {
  std::string out = printable(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

std::string dim_text(const Dim3& dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," + std::to_string(dim.z) + ")";
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

// One source line made fit for a terminal, and how many columns stand before its 1-based byte `column`.
struct Excerpt {
  std::string text;
  std::size_t caret = 0;
};

Excerpt make_excerpt(std::string_view line, int column) {
  Excerpt out;
  const std::size_t at = column > 0 ? static_cast<std::size_t>(column) - 1 : 0;
  std::size_t columns = 0;
  bool placed = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i == at) {
      out.caret = columns;
      placed = true;
    }
    const std::string shown =
        line[i] == '\t' ? std::string(4 - columns % 4, ' ') : printable(line.substr(i, 1));
    out.text += shown;
    // The bytes of one UTF-8 character after its first take no column of their own.
    if ((static_cast<unsigned char>(line[i]) & 0xc0U) != 0x80U) columns += shown.size();
  }
  if (!placed) out.caret = columns;
  if (column <= 0) {
    const auto first = out.text.find_first_not_of(' ');
    out.caret = first == std::string::npos ? 0 : first;
  }
  if (out.text.size() > kExcerptColumns) {
    const std::size_t cut = out.caret > kExcerptColumns / 2 ? out.caret - kExcerptColumns / 2 : 0;
    const bool more = out.text.size() - cut > kExcerptColumns;
    out.text = (cut > 0 ? "..." : "") + out.text.substr(cut, kExcerptColumns - 6) + (more ? "..." : "");
    out.caret = out.caret - cut + (cut > 0 ? 3 : 0);
  }
  return out;
}

struct Note {
  std::string who, rest;
};

Note split_note(const std::string& note) {
  Note out;
  std::size_t start = 0;
  while (start < note.size()) {
    auto end = note.find("; ", start);
    if (end == std::string::npos) end = note.size();
    const std::string part = note.substr(start, end - start);
    if (!part.empty()) {
      if (out.who.empty() && part[0] >= '0' && part[0] <= '9') {
        out.who = part;
      } else {
        out.rest += "; " + part;
      }
    }
    start = end + 2;
  }
  return out;
}

std::string passive(const std::string& role) {
  static constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"read", "read by"},
      {"write", "written by"},
      {"atomic", "updated by"},
      {"wait", "waited for by"},
      {"call", "called by"},
      {"barrier", "barrier reached by"},
      {"release", "released by"},
      {"acquire", "acquired by"},
      {"allocation", "allocated by"},
      {"free", "freed by"},
      {"exit", "left by"},
      {"trap", "stopped by"},
      {"host", "by"},
  };
  for (const auto& [name, form] : kForms) {
    if (role == name) return std::string(form);
  }
  return role.empty() ? "by" : one_line(role) + " by";
}

class Renderer {
 public:
  Renderer(const Finding& finding, const RenderOptions& options) : finding_(finding), options_(options) {
    if (options.colour) c_ = {"\x1b[1m", "\x1b[1;31m", "\x1b[34m", "\x1b[1;32m", "\x1b[0m"};
  }

  std::string text() {
    header();
    for (const Site& site : finding_.sites) {
      if (site.waits_for.empty()) {
        place(site);
      } else {
        waiter(site);
      }
    }
    if (!finding_.address.object.empty()) {
      std::string memory = one_line(finding_.address.object);
      if (finding_.address.pe >= 0) {
        const std::int64_t offset = finding_.address.offset;
        memory += offset < 0 ? ", " + with_commas(static_cast<unsigned long long>(-offset)) +
                                   " bytes before its start"
                             : ", byte " + std::to_string(offset);
        memory += " on PE " + std::to_string(finding_.address.pe);
      }
      labelled("memory", memory);
    }
    labelled("why", one_line(finding_.why));
    labelled("mend", one_line(finding_.advice));
    count();
    return std::move(out_);
  }

 private:
  std::string shown_file(const std::string& file) const {
    const auto name = options_.display_names.find(file);
    return one_line(name == options_.display_names.end() ? file : name->second);
  }

  void header() {
    out_ += c_.bold;
    if (!finding_.sites.empty()) {
      const Frame& where = finding_.sites.front().where;
      header_file_ = where.file;
      if (!where.file.empty()) {
        out_ += shown_file(where.file) + ":";
        if (where.line > 0) out_ += std::to_string(where.line) + ":";
        if (where.line > 0 && where.column > 0) out_ += std::to_string(where.column) + ":";
        out_ += " ";
      }
    }
    out_ += c_.off;
    out_ += c_.red + std::string(name_of(finding_.kind)) + ":" + c_.off + " " + c_.bold +
            one_line(finding_.message) + c_.off + "\n";
  }

  // "PE 1, block (3,0,0), thread (17,0,0), in consume(), call 2"
  static std::string who(const Site& site, const Note& note) {
    std::string out = site.pe >= 0 ? "PE " + std::to_string(site.pe) : std::string();
    const auto join_on = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
    if (!note.who.empty()) {
      join_on(one_line(note.who));
    } else if (site.on_device) {
      join_on("block " + dim_text(site.block));
      join_on("thread " + dim_text(site.thread));
    } else {
      out += out.empty() ? "host code" : "'s host code";
    }
    return out;
  }

  static std::string function_of(const Site& site) {
    const std::string& name = site.where.function.empty() ? site.kernel : site.where.function;
    if (name.empty()) return {};
    const std::string shown = one_line(name);
    return ", in " + shown + (shown.find('(') == std::string::npos ? "()" : "");
  }

  void place(const Site& site) {
    const Note note = split_note(site.note);
    std::string label = passive(site.role) + " " + who(site, note) + function_of(site);
    if (site.call > 0) label += ", call " + std::to_string(site.call);
    label += one_line(note.rest);

    const auto source = options_.sources.find(site.where.file);
    std::string_view line;
    if (source != options_.sources.end() && site.where.line > 0)
      line = line_of(source->second, site.where.line);
    if (line.empty()) {
      out_ += "   ";
      if (!site.where.file.empty()) {
        out_ += shown_file(site.where.file);
        if (site.where.line > 0) out_ += ":" + std::to_string(site.where.line);
        out_ += ": ";
      }
      out_ += label + "\n";
    } else {
      if (site.where.file != header_file_) out_ += "   in " + shown_file(site.where.file) + ":\n";
      const Excerpt excerpt = make_excerpt(line, site.where.column);
      out_ += c_.blue + right_aligned(std::to_string(site.where.line), 5) + " |" + c_.off + " " +
              excerpt.text + "\n";
      out_ += std::string(c_.blue) + "      |" + c_.off + " " + std::string(excerpt.caret, ' ') + c_.green +
              "^" + c_.off + " " + label + "\n";
    }
    for (const Frame& frame : site.inlined_at) {
      out_ += "        inlined at " + shown_file(frame.file) + ":" + std::to_string(frame.line);
      if (!frame.function.empty()) {
        const std::string shown = one_line(frame.function);
        out_ += ", in " + shown + (shown.find('(') == std::string::npos ? "()" : "");
      }
      out_ += "\n";
    }
  }

  // One line a waiter: "PE 0, 8 blocks: wait at line 44 for signal[2] >= 3; it holds 2; only PE 1 writes it
  // (line 39)".
  void waiter(const Site& site) {
    const Note note = split_note(site.note);
    out_ += "   " + who(site, note) + ": ";
    out_ += site.role.empty() ? "wait" : one_line(site.role);
    if (site.where.line > 0) {
      out_ += site.where.file == header_file_ ? " at line " : " at " + shown_file(site.where.file) + ":";
      out_ += std::to_string(site.where.line);
    } else if (!site.where.function.empty()) {
      out_ += " in " + one_line(site.where.function);
    }
    out_ += " for " + one_line(site.waits_for);
    if (!site.holds.empty()) out_ += "; it holds " + one_line(site.holds);
    out_ += one_line(note.rest) + "\n";
  }

  // "   why: ...", broken between words; what follows stands under the text's start.
  void labelled(const char* label, const std::string& text) {
    if (text.empty()) return;
    const std::string indent(std::string_view(label).size() + 5, ' ');
    out_ += std::string("   ") + c_.bold + label + ":" + c_.off;
    std::size_t column = indent.size() - 1;
    std::size_t start = 0;
    while (start < text.size()) {
      auto end = text.find(' ', start);
      if (end == std::string::npos) end = text.size();
      if (column + 1 + (end - start) > kColumns && column >= indent.size()) {
        out_ += "\n" + indent;
        column = indent.size();
      } else {
        out_ += ' ';
        ++column;
      }
      out_.append(text, start, end - start);
      column += end - start;
      start = end + 1;
    }
    out_ += "\n";
  }

  void count() {
    std::string line;
    if (finding_.count > 1) line = with_commas(finding_.count) + " times";
    if (!options_.occurrence.empty()) line += (line.empty() ? "" : ", ") + one_line(options_.occurrence);
    if (!line.empty()) out_ += "   " + line + "\n";
  }

  const Finding& finding_;
  const RenderOptions& options_;
  Colours c_;
  std::string header_file_;
  std::string out_;
};

}  // namespace

std::string render(const Finding& finding, const RenderOptions& options) {
  return Renderer(finding, options).text();
}

}  // namespace echolo::vgpu
