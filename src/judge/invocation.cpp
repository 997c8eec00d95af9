#include "judge/invocation.hpp"

#include <cerrno>
#include <filesystem>

namespace echolo::judge {

std::string echolo_command() {
  const std::filesystem::path typed(::program_invocation_name);
  if (typed.filename() != "echolo" || !typed.has_parent_path()) return "echolo";
  std::error_code code;
  const std::string near = std::filesystem::proximate(typed, code).string();
  return code || near.starts_with("..") || near.size() >= typed.string().size() ? typed.string() : near;
}

}  // namespace echolo::judge
