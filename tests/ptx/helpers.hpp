#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ptx/module.hpp"

namespace echolo::ptx {

// The module that `text` makes; an error fails the test.
inline Module must_parse(const std::string& text, const std::string& name = "test.ptx") {
  Result<Module> module = parse(text, name);
  if (!module.ok()) {
    ADD_FAILURE() << module.error().render();
    return {};
  }
  return std::move(*module);
}

// A text with this at module scope; it starts on line 4.
inline std::string with_header(const std::string& declarations) {
  return ".version 9.2\n.target sm_90a\n.address_size 64\n" + declarations;
}

// A kernel `k` with a .u64 parameter `p`, some registers, and this body, which starts on line 10.
inline std::string kernel(const std::string& body) {
  return with_header(
      ".visible .entry k(.param .u64 p)\n{\n"
      ".reg .pred %p<8>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>; .reg .f32 %f<32>; .reg "
      ".f64 %fd<8>;\n" +
      body + "\n}\n");
}

// The first instruction of such a kernel.
inline Instruction one(const std::string& text) {
  static Module last;  // its text is what string_views of the instruction point into
  last = must_parse(kernel(text));
  if (last.functions.empty() || last.functions[0].body.empty()) return {};
  return last.functions[0].body[0];
}

}  // namespace echolo::ptx
