// Source places of host code. While a job runs a place is a token, "@{2+1f40,1+77a0}" (module and offset of
// each return address); tokens become file and line once, at the end, with one addr2line a module.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/protocol.hpp"
#include "vgpu/finding.hpp"

namespace echolo::runtime {

// The line that goes with a token: findings are merged by file and line, and only where there is a line.
inline constexpr int kTokenLine = 1;

class SiteTable {
 public:
  // A PE announces a module: its next number is bound to the path.
  void add_module(int pe, std::string path);
  std::string token(int pe, const wire::Frame* frames) const;  // empty where nothing is known
  vgpu::Frame frame(int pe, const wire::Frame* frames) const;  // the token as a place

  // Replaces the tokens of host places in all findings and texts by what they stand for.
  void resolve(std::vector<vgpu::Finding>& findings, const std::vector<std::string*>& texts);

 private:
  struct Place {
    vgpu::Frame frame;
    bool found = false;
  };
  void look_up(const std::vector<std::string>& tokens);
  void replace_in(std::string& text) const;

  std::vector<std::string> paths_;                 // module numbers of the node, the same on every run
  std::vector<std::vector<std::uint32_t>> of_pe_;  // PE's module number - 1 -> index into paths_
  std::map<std::string, Place> places_;            // by token
};

}  // namespace echolo::runtime
