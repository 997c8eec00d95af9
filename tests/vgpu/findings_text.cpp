// Findings as text and as JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vgpu/finding.hpp"

namespace echolo::vgpu {
namespace {

const char* const kSource =
    "line1\nline2\n  dst[i] = acc;\n\tfloat v = remote[i];\nvoid wait() { while (*signal < round) ; }\n";

Site device_site(const std::string& role, int pe, int line, int column, const std::string& function) {
  Site site;
  site.role = role;
  site.pe = pe;
  site.block = {3, 0, 0};
  site.thread = {17, 0, 0};
  site.where = {"/tmp/x/candidate.cu", line, column, function};
  site.call = 2;
  site.kernel = "ag_gemm";
  return site;
}

Finding race() {
  Finding finding;
  finding.kind = FindingKind::kDataRace;
  finding.message = "PE 1 reads what PE 0 writes, and nothing orders the two";
  finding.why =
      "thread 0 releases `flag` at line 33, but thread 17's write does not happen before that: no barrier "
      "lies between the two";
  finding.advice = "__syncthreads() before line 33";
  finding.sites = {device_site("read", 1, 4, 12, "consume"),
                   device_site("write", 0, 3, 3, "produce(float*)")};
  finding.sites[1].inlined_at.push_back({"/tmp/x/candidate.cu", 2, 1, "kernel"});
  finding.address = {1, "`buf`, 64 KiB from nvshmem_malloc at candidate.cu:12", 4164};
  finding.count = 1024;
  return finding;
}

RenderOptions options() {
  RenderOptions out;
  out.sources["/tmp/x/candidate.cu"] = kSource;
  out.display_names["/tmp/x/candidate.cu"] = "candidate.cu";
  return out;
}

TEST(FindingsText, LikeACompilersDiagnostic) {
  RenderOptions with = options();
  with.occurrence = "first under seed 3, policy fair";
  EXPECT_EQ(render(race(), with),
            "candidate.cu:4:12: data-race: PE 1 reads what PE 0 writes, and nothing orders the two\n"
            "    4 |     float v = remote[i];\n"
            "      |               ^ read by PE 1, block (3,0,0), thread (17,0,0), in consume(), call 2\n"
            "    3 |   dst[i] = acc;\n"
            "      |   ^ written by PE 0, block (3,0,0), thread (17,0,0), in produce(float*), call 2\n"
            "        inlined at candidate.cu:2, in kernel()\n"
            "   memory: `buf`, 64 KiB from nvshmem_malloc at candidate.cu:12, byte 4164 on PE 1\n"
            "   why: thread 0 releases `flag` at line 33, but thread 17's write does not happen before that: "
            "no barrier\n"
            "        lies between the two\n"
            "   mend: __syncthreads() before line 33\n"
            "   1,024 times, first under seed 3, policy fair\n");
}

TEST(FindingsText, OneLineAWaiterInADeadlock) {
  Finding finding;
  finding.kind = FindingKind::kDeadlock;
  finding.message = "no PE can go on";
  finding.why = "line 39 sends round + 1 and line 44 waits for round + 2";
  for (int pe = 0; pe < 2; ++pe) {
    Site site = device_site("wait", pe, 5, 15, "wait");
    site.waits_for = "signal[2] >= 3 on PE " + std::to_string(pe);
    site.holds = "2";
    site.note = "8 blocks; only PE " + std::to_string(1 - pe) + " writes it (line 39)";
    finding.sites.push_back(site);
  }
  Site host;
  host.role = "wait";
  host.pe = 1;
  host.on_device = false;
  host.where.function = "cudaDeviceSynchronize";
  host.waits_for = "a kernel";
  finding.sites.push_back(host);
  EXPECT_EQ(render(finding, options()),
            "candidate.cu:5:15: deadlock: no PE can go on\n"
            "   PE 0, 8 blocks: wait at line 5 for signal[2] >= 3 on PE 0; it holds 2; only PE 1 writes it "
            "(line 39)\n"
            "   PE 1, 8 blocks: wait at line 5 for signal[2] >= 3 on PE 1; it holds 2; only PE 0 writes it "
            "(line 39)\n"
            "   PE 1's host code: wait in cudaDeviceSynchronize for a kernel\n"
            "   why: line 39 sends round + 1 and line 44 waits for round + 2\n");
}

TEST(FindingsText, ControlCharactersNeverPass) {
  Finding finding = race();
  finding.message = "evil \x1b[31m name\nsecond line";
  finding.sites[0].where.function = "f\x07";
  finding.address.object = "a\x1b]0;x\x07";
  RenderOptions with = options();
  with.sources["/tmp/x/candidate.cu"] = "a\nb\n\x1b[2J  x\n\x1b[31mfloat v\n";
  const std::string text = render(finding, with);
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
}

TEST(FindingsText, NoSourceLongLinesAndColour) {
  Finding finding = race();
  finding.sites.resize(1);
  EXPECT_EQ(render(finding, {}).substr(0, 170),
            "/tmp/x/candidate.cu:4:12: data-race: PE 1 reads what PE 0 writes, and nothing orders the two\n"
            "   /tmp/x/candidate.cu:4: read by PE 1, block (3,0,0), thread (17,0,0), in co");
  RenderOptions with;
  with.sources["/tmp/x/candidate.cu"] = "\n\n\n" + std::string(300, 'x') + "\n";
  finding.sites[0].where.column = 200;
  const std::string text = render(finding, with);
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    if (text.compare(start, 8, "    4 | ") == 0) {
      EXPECT_LE(end - start, 110U);
    }
    start = end + 1;
  }
  with.colour = true;
  EXPECT_NE(render(finding, with).find("\x1b[1;31mdata-race:\x1b[0m"), std::string::npos);
}

TEST(FindingsLog, MergesByKindAndLines) {
  FindingLog log;
  const std::size_t first = log.add(race());
  Finding again = race();
  again.sites[0].thread = {5, 0, 0};
  again.count = 6;
  EXPECT_EQ(log.add(again), first);
  EXPECT_EQ(log.all().size(), 1U);
  EXPECT_EQ(log.all()[0].count, 1030U);
  EXPECT_EQ(log.all()[0].sites[0].thread.x, 17U);
  EXPECT_EQ(log.all()[0].id.size(), 16U);
  Finding other = race();
  other.sites[1].where.line = 9;
  other.fatal = true;
  log.add(other);
  EXPECT_EQ(log.all().size(), 2U);
  EXPECT_NE(log.all()[0].id, log.all()[1].id);
  EXPECT_TRUE(log.has_fatal());
  // Without any line the message tells them apart.
  Finding plain;
  plain.kind = FindingKind::kLeak;
  plain.message = "a";
  log.add(plain);
  plain.message = "b";
  log.add(plain);
  EXPECT_EQ(log.all().size(), 4U);
}

TEST(FindingsJson, RoundTripsAndHasTheVerdictsForm) {
  Finding finding = race();
  finding.id = "0123456789abcdef";
  finding.fatal = true;
  finding.sites[0].waits_for = "signal[2] >= 3";
  finding.sites[0].holds = "2";
  finding.sites[0].note = "8 blocks";
  const nlohmann::json json = finding;
  EXPECT_EQ(json["kind"], "data-race");
  EXPECT_EQ(json["count"], 1024);
  EXPECT_EQ(json["sites"][0]["block"], nlohmann::json::array({3, 0, 0}));
  EXPECT_EQ(json["sites"][1]["inlined_at"][0]["line"], 2);
  EXPECT_EQ(json["address"]["symbol_or_allocation"], "`buf`, 64 KiB from nvshmem_malloc at candidate.cu:12");
  EXPECT_EQ(json["address"]["offset"], 4164);
  const Finding back = json.get<Finding>();
  EXPECT_EQ(nlohmann::json(back), json);
  EXPECT_EQ(render(back, options()), render(finding, options()));
  Finding bare;
  bare.kind = FindingKind::kDeviceTrap;
  EXPECT_TRUE(nlohmann::json(bare)["address"].is_null());
  EXPECT_EQ(nlohmann::json(nlohmann::json(bare).get<Finding>()), nlohmann::json(bare));
  EXPECT_THROW(nlohmann::json::parse(R"({"kind":"nonsense"})").get<Finding>(), nlohmann::json::exception);
}

TEST(FindingsNames, EveryKindHasANameAndAStatus) {
  EXPECT_EQ(name_of(FindingKind::kUninitialisedRead), "uninitialised-read");
  EXPECT_EQ(status_of(FindingKind::kUninitialisedRead), "uninitialised_read");
  EXPECT_EQ(status_of(FindingKind::kDeviceTrap), "crashed");
  for (int i = 0; i <= static_cast<int>(FindingKind::kDeviceTrap); ++i)
    EXPECT_NE(name_of(static_cast<FindingKind>(i)), "unknown");
}

}  // namespace
}  // namespace echolo::vgpu
