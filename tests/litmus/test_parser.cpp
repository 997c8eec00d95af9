#include <gtest/gtest.h>

#include "litmus/explore.hpp"
#include "litmus/program.hpp"

namespace echolo::litmus {
namespace {

const std::string kTwo = "{\nx=0; f=0;\nP0:r9=7;\n}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n";

std::string fault(const std::string& text) {
  const Result<Program> program = parse_litmus(text, "t.litmus");
  return program.ok() ? "" : program.error().render();
}

TEST(Parser, ReadsAllParts) {
  const Result<Program> program = parse_litmus(
      "PTX name of it\n\"a { in a description\"\n{ x = 0x10; y @ generic aliases x; t @ texture aliases y; "
      "P1:r0 = -3; }\n"
      " P0@cta 2,gpu 1 | P1@cta 0, cluster 4, gpu 0 ; (* a comment\n over lines *)\n"
      " st.release.sys x, r0 | L: ld.acquire.sys r0, y ;\n"
      "  | bne r0, 5, L ;\n | tld.weak r1, t ;\n"
      "locations [x; P1:r1;]\nfilter (P1:r0 >= 5)\n~exists (P1:r1 != 0x5 /\\ not (x == 5 \\/ 1:r0 < -2))\n",
      "t.litmus");
  ASSERT_TRUE(program.ok()) << program.error().render();
  EXPECT_EQ(program->name, "name of it");
  ASSERT_EQ(program->threads.size(), 2U);
  EXPECT_EQ(program->threads[0].place, (model::Place{1, program->threads[0].place.cluster, 2}));
  EXPECT_EQ(program->threads[1].place.cluster, 4);
  ASSERT_EQ(program->locations.size(), 1U);
  EXPECT_EQ(program->locations[0].initial, 16);
  ASSERT_EQ(program->addresses.size(), 2U) << "a texture alias is the same address through another proxy";
  const Instruction& texture = program->threads[1].code[2];
  EXPECT_EQ(texture.address, 1);
  EXPECT_EQ(texture.proxy, model::Proxy::kTexture);
  EXPECT_EQ(program->threads[1].code[1].target, 0);
  EXPECT_EQ(program->quantifier, Quantifier::kNotExists);
  EXPECT_EQ(program->observed.size(), 3U);
}

TEST(Parser, ConditionsAreEvaluated) {
  const Result<Program> program =
      parse_litmus("PTX c\n" + kTwo + " ;\nexists (x == 1 \\/ f == 1 /\\ P0:r9 == 7)\n", "t.litmus");
  ASSERT_TRUE(program.ok()) << program.error().render();
  EXPECT_TRUE(holds(program->condition, {1, 0, 0}));
  EXPECT_TRUE(holds(program->condition, {0, 1, 7})) << "and binds tighter than or";
  EXPECT_FALSE(holds(program->condition, {0, 1, 6}));
}

TEST(Parser, ErrorsNameTheLine) {
  const struct {
    const char* body;
    const char* message;
  } cases[] = {
      {" ld.weak r0, q ;\n", "t.litmus:7:14: 'q' is no location with an initial value"},
      {" ld.relaxed r0, x ;\n", "wants a scope after .relaxed"},
      {" ld.weak.cta r0, x ;\n", "'.cta' does not belong there"},
      {" ld.release.cta r0, x ;\n", "wants one of: weak relaxed acquire"},
      {" st.acquire.cta x, 1 ;\n", "wants one of: weak relaxed release"},
      {" tld.relaxed.cta r0, x ;\n", "wants one of: weak"},
      {" fence.weak.cta ;\n", "wants one of: acq_rel sc"},
      {" fence.proxy.generic ;\n", "is no proxy that a fence can name"},
      {" atom.relaxed.gpu.swap r0, x, 1 ;\n", "'swap' is no operation of atom"},
      {" red.relaxed.gpu.cas x, 1 ;\n", "'cas' is no operation of red"},
      {" beq r0, 1, nowhere ;\n", "no label 'nowhere' in this thread"},
      {" L: ; L: ;\n", "label 'L' appears twice"},
      {" nop ;\n", "'nop' is no instruction"},
      {" st.weak x, 99999999999999999999 ;\n", "does not fit in 64 bits"},
      {" ; | | ;\n", "more than 2 columns"},
      {" bar.cta.sync 0, 0, 0 ;\n", "a barrier waits for at least one thread"},
      {" mbarrier.arrive.release.cta x ;\n", "'x' is no mbarrier"},
      {" multimem.red.relaxed.sys.add x, 1 ;\n", "'x' is no multicast address"},
      {" nvshmem.putt x, f ;\n", "did you mean"},
      {" ;\nexists (P7:r0 == 1)\n", "there is no thread 'P7'"},
      {" ;\nexists (x == 1\n", "expected ')'"},
      {" ;\nexists (x == 1) exists\n", "expected the end of the file"},
      {" ;\nfinal (x == 1)\n", "'final' is not supported"},
      {" (* open\n", "a comment begins here and never ends"},
      {" ld.weak r0 $ x ;\n", "unexpected character '$'"},
  };
  for (const auto& each : cases) {
    const std::string message = fault("PTX t\n" + kTwo + each.body);
    EXPECT_NE(message.find(each.message), std::string::npos) << each.body << " -> " << message;
    EXPECT_EQ(message.rfind("t.litmus:", 0), 0U) << message;
  }
  EXPECT_NE(fault("X86 t\n{}\n").find("begins with 'PTX'"), std::string::npos);
  EXPECT_NE(fault("PTX t\n\"never closed {").find("never ends"), std::string::npos);
  EXPECT_NE(fault("PTX t\n{ x=0; x=1; }\n P0@cta 0,gpu 0 ;\n").find("declared twice"), std::string::npos);
  EXPECT_NE(fault("PTX t\n{ x=0; }\n P0@cta 0,gpu 0 | P0@cta 0,gpu 0 ;\n").find("appears twice"),
            std::string::npos);
  EXPECT_NE(fault("PTX t\n{ x=0; y @ bogus aliases x; }\n P0@cta 0,gpu 0 ;\n").find("is no proxy"),
            std::string::npos);
}

TEST(Explore, LoopsThatChangeSomethingAreCutAndSaidSo) {
  const Result<Program> program = parse_litmus(
      "PTX forever\n{ x=0; }\n P0@cta 0,gpu 0 ;\n L: red.relaxed.gpu.add x, 1 ;\n goto L ;\nexists (x == "
      "1)\n",
      "t");
  ASSERT_TRUE(program.ok()) << program.error().render();
  const Answer answer = explore(*program);
  EXPECT_FALSE(answer.complete);
  EXPECT_NE(answer.why_incomplete.find("loop"), std::string::npos);
}

TEST(Explore, CountedLoopsEnd) {
  const Result<Program> program = parse_litmus(
      "PTX counted\n{ x=0; P0:r0=3; }\n P0@cta 0,gpu 0 ;\n L: red.relaxed.gpu.add x, 2 ;\n sub r0, r0, 1 ;\n"
      " bgt r0, 0, L ;\nforall (x == 6 /\\ P0:r0 == 0)\n",
      "t");
  ASSERT_TRUE(program.ok()) << program.error().render();
  const Answer answer = explore(*program);
  EXPECT_TRUE(answer.complete) << answer.why_incomplete;
  EXPECT_TRUE(answer.holds);
  EXPECT_TRUE(answer.terminates);
  EXPECT_EQ(answer.outcomes.size(), 1U);
}

}  // namespace
}  // namespace echolo::litmus
