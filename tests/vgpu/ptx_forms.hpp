// The lists of instruction forms in tests/vgpu/ptx_forms: what sm_90a has, form by form. The coverage page
// (docs/ptx-coverage.md) and the golden vectors (tests/gpu/golden) are made from them.
#pragma once

#include <string>
#include <vector>

namespace echolo::vgpu::ptx_forms {

struct Line {  // one line of a list: a pattern and the forms that it stands for
  std::string pattern;
  std::vector<std::string> forms;  // instructions with operands, without the semicolon
};
struct Section {
  std::string title;
  std::string test;     // the file that tests its forms one by one
  bool golden = false;  // are its forms compared with what a GPU gave (tests/gpu/golden)?
  std::vector<Line> lines;
};

std::vector<Section> read_lists();  // all of them, in order; throws where a list is malformed

// A module whose entry `k` has the registers that the lists use and then this instruction.
std::string module_of(const std::string& instruction);

// Why the virtual node refuses the form; empty where it executes it.
std::string refusal(const std::string& instruction);

}  // namespace echolo::vgpu::ptx_forms
