#include "judge/candidate.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "problem/suite.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

std::string hash_of(const std::string& text, const Knobs& knobs) {
  Sha256 hash;
  hash.field("cuda").field(text);
  for (const KnobValue& knob : knobs) hash.field(knob.name).field(std::to_string(knob.value));
  return "sha256:" + hash.hex();
}

bool is_knob_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && (std::isdigit(static_cast<unsigned char>(name[0])) == 0) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

Result<Candidate> file_candidate(const std::string& path, const std::vector<std::string>& settings) {
  Result<std::string> text = read_file(path);
  if (!text) return text.error();
  Result<Candidate> out = text_candidate(*text, path, "", settings);
  if (out) out->label = path + (out->knobs.empty() ? "" : " " + knobs_text(out->knobs));
  return out;
}

// Where a bare name or a kernels/NAME that is not there from the working directory may be meant.
Result<std::string> in_library(const std::string& what) {
  Result<std::string> home = echolo_home();
  if (!home) return std::string();
  for (const fs::path& path : {fs::path(*home) / what, fs::path(*home) / "kernels" / what}) {
    std::error_code code;
    if (fs::exists(path / "kernel.toml", code)) return path.string();
  }
  return std::string();
}

}  // namespace

Result<Candidate> text_candidate(const std::string& text, const std::string& path, const std::string& label,
                                 const std::vector<std::string>& settings) {
  Candidate out;
  out.path = path;
  out.text = text;
  out.label = label;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    KnobValue knob;
    knob.name = setting.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : setting.substr(equals + 1);
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), knob.value);
    if (!is_knob_name(knob.name) || value.empty() || code != std::errc() ||
        end != value.data() + value.size()) {
      return usage_error("'" + setting + "' is not of the form KNOB=VALUE with a whole number");
    }
    out.knobs.push_back(std::move(knob));
  }
  out.hash = hash_of(out.text, out.knobs);
  return out;
}

Result<Candidate> library_candidate(const KernelLibrary& library, const Knobs& knobs) {
  Result<std::string> text = read_file(library.source_path);
  if (!text) return text.error();
  Candidate out;
  out.path = library.source_path;
  out.text = std::move(*text);
  out.knobs = knobs;
  out.label = library.name + (knobs.empty() ? "" : " " + knobs_text(knobs));
  out.hash = hash_of(out.text, out.knobs);
  out.library = library;
  return out;
}

Result<Candidate> load_candidate(const std::string& what, const std::vector<std::string>& knobs) {
  std::error_code code;
  std::string place = what;
  if (!fs::exists(place, code)) {
    Result<std::string> found = in_library(what);
    if (!found) return found.error();
    place = *found;
  }
  if (place.empty()) {
    std::vector<std::string> names;
    if (Result<std::vector<KernelLibrary>> all = kernel_library(""); all) {
      for (const KernelLibrary& library : *all) names.push_back("kernels/" + library.name);
    }
    const std::string near = did_you_mean(what, names);
    return usage_error("there is no file or kernel directory '" + what + "'",
                       near.empty() ? "give a .cu file, or one of " + join(names, ", ") : near);
  }
  if (fs::is_directory(place, code)) {
    Result<KernelLibrary> library = load_kernel(place);
    if (!library) return library.error();
    Result<Knobs> chosen = library->with_settings(knobs);
    if (!chosen) return chosen.error();
    return library_candidate(*library, *chosen);
  }
  if (!fs::is_regular_file(place, code)) return usage_error(what + " is neither a file nor a directory");
  return file_candidate(place, knobs);
}

}  // namespace echolo::judge
