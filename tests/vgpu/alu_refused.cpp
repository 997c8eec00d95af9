// Forms that sm_90a lacks are refused at load by their name, and so are those without .sync.
#include <gtest/gtest.h>

#include "ptx_forms.hpp"

namespace echolo::vgpu {
namespace {

TEST(AluRefused, FormsOfLaterArchitectures) {
  std::size_t n = 0;
  for (const ptx_forms::Section& section : ptx_forms::read_lists()) {
    if (section.test != "tests/vgpu/alu_refused.cpp") continue;
    for (const ptx_forms::Line& line : section.lines) {
      for (const std::string& form : line.forms) {
        const std::string reason = ptx_forms::refusal(form);
        EXPECT_NE(reason, "") << form << " is executed";
        const std::string mnemonic = form.substr(0, form.find_first_of(". "));
        EXPECT_NE(reason.find(mnemonic), std::string::npos) << form << ": " << reason;
        ++n;
      }
    }
  }
  EXPECT_GE(n, 50U);
}

TEST(AluRefused, RegisterCountsThatTheIsaForbids) {
  for (const char* form : {"setmaxnreg.inc.sync.aligned.u32 16", "setmaxnreg.dec.sync.aligned.u32 100",
                           "setmaxnreg.dec.sync.aligned.u32 264", "setmaxnreg.dec.sync.aligned.u32 %r1"})
    EXPECT_NE(ptx_forms::refusal(form), "") << form;
}

}  // namespace
}  // namespace echolo::vgpu
