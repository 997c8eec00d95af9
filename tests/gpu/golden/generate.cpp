// Writes into the folder named on the command line: forms.ptx (an entry for each form that has golden
// vectors), forms.txt (the forms, in order) and wgmma.ptx. See README.md.
#include <fstream>
#include <iostream>

#include "../../vgpu/ptx_forms.hpp"
#include "golden.hpp"
#include "wgmma.hpp"

namespace {

const char* suffix_of(const std::string& name) {
  switch (golden::register_bits(name)) {
    case 16:
      return "b16";
    case 32:
      return "b32";
    default:
      return "b64";
  }
}

// Every operand has 16 bytes in memory, whatever its width; those of one register lie one after the other.
std::string entry_of(const std::string& form, std::size_t index) {
  const golden::Case c = golden::make_case(form);
  std::string text = ".visible .entry g" + std::to_string(index) + "(.param .u64 in, .param .u64 out)\n{\n" +
                     ".reg .pred %p<8>;\n.reg .b16 %rs<16>;\n.reg .b32 %r<32>;\n.reg .f32 %f<8>;\n"
                     ".reg .b64 %rd<24>;\n.reg .f64 %fd<8>;\n.reg .b128 %q<4>;\n.reg .b64 %at, %to, %x, %y;\n"
                     ".reg .b32 %thread;\n.reg .b32 %word;\n"
                     "ld.param.u64 %at, [in];\nld.param.u64 %to, [out];\nmov.u32 %thread, %tid.x;\n"
                     "mul.wide.u32 %x, %thread, 16;\nadd.u64 %at, %at, %x;\nadd.u64 %to, %to, %x;\n";
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    const std::string& name = c.sources[i].name;
    const std::string place = "[%at+" + std::to_string(i * 16 * golden::kThreads) + "]";
    if (golden::register_bits(name) == 1) {
      text += "ld.global.b32 %word, " + place + ";\nsetp.ne.u32 " + name + ", %word, 0;\n";
    } else if (golden::register_bits(name) == 128) {
      text += "ld.global.v2.b64 {%x, %y}, " + place + ";\nmov.b128 " + name + ", {%x, %y};\n";
    } else {
      text += std::string("ld.global.") + suffix_of(name) + " " + name + ", " + place + ";\n";
    }
  }
  for (const std::string* line : {&c.before, &c.form, &c.after}) {
    if (!line->empty()) text += *line + ";\n";
  }
  for (std::size_t i = 0; i < c.destinations.size(); ++i) {
    const std::string& name = c.destinations[i];
    const std::string place = "[%to+" + std::to_string(i * 16 * golden::kThreads) + "]";
    if (golden::register_bits(name) == 1) {
      text += "selp.u32 %word, 1, 0, " + name + ";\nst.global.b32 " + place + ", %word;\n";
    } else if (golden::register_bits(name) == 128) {
      text += "mov.b128 {%x, %y}, " + name + ";\nst.global.v2.b64 " + place + ", {%x, %y};\n";
    } else {
      text += std::string("st.global.") + suffix_of(name) + " " + place + ", " + name + ";\n";
    }
  }
  return text + "ret;\n}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: golden_generate FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  std::ofstream ptx(folder + "/forms.ptx"), list(folder + "/forms.txt");
  ptx << ".version 9.2\n.target sm_90a\n.address_size 64\n";
  std::size_t index = 0;
  for (const auto& section : echolo::vgpu::ptx_forms::read_lists()) {
    if (!section.golden) continue;
    for (const auto& line : section.lines) {
      for (const std::string& form : line.forms) {
        list << form << "\n";
        ptx << entry_of(form, index++);
      }
    }
  }
  std::ofstream(folder + "/wgmma.ptx") << golden::wgmma_module(golden::wgmma_cases());
  std::cout << index << " forms\n";
  return ptx.good() && list.good() ? 0 : 3;
}
