#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "mutation/mutate.hpp"

namespace echolo::mutation {
namespace {

std::multiset<std::string> operations(const std::vector<Mutant>& mutants) {
  std::multiset<std::string> result;
  for (const Mutant& mutant : mutants) result.insert(mutant.operation);
  return result;
}

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Mutate, OneChangeAndEveryLineWhereItWas) {
  const std::string source =
      "__global__ void k(int* p) {\n"
      "  p[threadIdx.x] = 1;\n"
      "  __syncthreads();  // all have written\n"
      "  if (threadIdx.x == 0) nvshmem_signal_wait_until(flag,\n"
      "                                                  NVSHMEM_CMP_GE, call);\n"
      "}\n";
  const std::vector<Mutant> mutants = mutants_of(source);
  ASSERT_EQ(mutants.size(), 3U);
  for (const Mutant& mutant : mutants) {
    EXPECT_EQ(lines(mutant.text), lines(source)) << mutant.text;
    EXPECT_NE(mutant.text, source);
  }
  EXPECT_EQ(mutants[0].operation, "delete-call");
  EXPECT_EQ(mutants[0].line, 3);
  EXPECT_NE(mutants[0].text.find("  ;  // all have written"), std::string::npos);
  EXPECT_EQ(mutants[1].operation, "delete-call");
  EXPECT_EQ(mutants[2].operation, "wait-for-less");
  EXPECT_NE(mutants[2].text.find("NVSHMEM_CMP_GE, (call) - 1)"), std::string::npos) << mutants[2].text;
}

TEST(Mutate, CommentsDirectivesAndOtherStringsStay) {
  EXPECT_TRUE(
      mutants_of("// __syncthreads();\n#define S __syncthreads()\nconst char* s = \"acquire\";\n").empty());
}

TEST(Mutate, PtxIsNarrowedAndWeakened) {
  const std::vector<Mutant> mutants = mutants_of(
      "void f() { asm volatile(\"st.release.sys.global.u64 [%0], %1;\" ::\"l\"(p), \"l\"(v)); }\n");
  EXPECT_EQ(operations(mutants), (std::multiset<std::string>{"narrow-scope", "weaken-order"}));
  EXPECT_NE(mutants[0].text.find("st.release.gpu.global"), std::string::npos);
  EXPECT_NE(mutants[1].text.find("st.relaxed.sys.global"), std::string::npos);
  EXPECT_EQ(operations(mutants_of("void f() { asm volatile(\"fence.acq_rel.sys;\" ::: \"memory\"); }\n")),
            (std::multiset<std::string>{"delete-call", "narrow-scope"}));
}

TEST(Mutate, ASignalGoesBeforeItsData) {
  const std::vector<Mutant> mutants = mutants_of(
      "void f() {\n  nvshmemx_putmem_signal_nbi_block(to, from, f(a, b), sig, 1, NVSHMEM_SIGNAL_ADD, "
      "pe);\n}\n");
  ASSERT_EQ(mutants.size(), 1U);
  EXPECT_NE(mutants[0].text.find("nvshmemx_signal_op(sig, 1, NVSHMEM_SIGNAL_ADD, pe); "
                                 "nvshmemx_putmem_nbi_block(to, from, f(a, b), pe);"),
            std::string::npos)
      << mutants[0].text;
}

TEST(Mutate, ResetsAreDropped) {
  const std::vector<Mutant> mutants = mutants_of("void f() { flags[i] = 0; other = 0; *counter = 0; }\n");
  EXPECT_EQ(operations(mutants), (std::multiset<std::string>{"drop-reset", "drop-reset"}));
}

TEST(Mutate, OnlyFlagsAndCountersAreReset) {
  EXPECT_EQ(
      mutants_of("int main() { cudaMemset(arrived, 0, 8); cudaMemset(data, 0, 8); cudaMemset(flag, 1, 8); }")
          .size(),
      1U);
}

TEST(Mutate, AWaitOnAStreamKeepsItsStream) {
  const std::vector<Mutant> mutants = mutants_of(
      "int main() { nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, f(round, 1), stream); }\n");
  ASSERT_EQ(mutants.size(), 2U);
  EXPECT_NE(mutants[1].text.find("NVSHMEM_CMP_GE, (f(round, 1)) - 1, stream);"), std::string::npos)
      << mutants[1].text;
}

TEST(Mutate, PollingLoopsWaitForLessOthersAreLeftAlone) {
  const std::vector<Mutant> mutants = mutants_of(
      "void f() {\n  do { asm(\"ld.relaxed.sys.u64 %0, [%1];\" : \"=l\"(v) : \"l\"(p)); } while (v < want);\n"
      "  do { ++i; } while (i < n);\n  while (i < n) ++i;\n}\n");
  EXPECT_EQ(operations(mutants), (std::multiset<std::string>{"narrow-scope", "wait-for-less"}));
}

TEST(Mutate, NamedBarriersAreDeleted) {
  EXPECT_EQ(
      operations(mutants_of("void f() { asm volatile(\"bar.sync %0, 128;\" ::\"r\"(2) : \"memory\"); }")),
      (std::multiset<std::string>{"delete-call"}));
}

TEST(Mutate, WhatWaitsForNothingStays) {
  // Nothing was started before the first wait; allocating and freeing meet the peers anyway.
  EXPECT_TRUE(
      mutants_of("int main() {\n  int* p = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));\n"
                 "  cudaDeviceSynchronize();\n  nvshmem_barrier_all();\n  const int pe = nvshmem_my_pe();\n"
                 "  nvshmem_barrier_all();\n  cudaFree(q);\n  nvshmem_free(p);\n}\n")
          .empty());
  EXPECT_TRUE(mutants_of("extern \"C\" void candidate_destroy(State* s) {\n  cudaDeviceSynchronize();\n"
                         "  nvshmem_free(s->p);\n}\n")
                  .empty());
  // A reset, or a launch, lies between.
  EXPECT_EQ(mutants_of("int main() {\n  flag = nvshmem_malloc(8);\n  cudaMemset(flag, 0, 8);\n"
                       "  cudaDeviceSynchronize();\n  nvshmem_barrier_all();\n  k<<<1, 1>>>(flag);\n"
                       "  cudaDeviceSynchronize();\n  nvshmem_barrier_all();\n  use(flag);\n}\n")
                .size(),
            5U);
  // Of another function nobody knows what came before.
  EXPECT_EQ(mutants_of("void wait() { cudaDeviceSynchronize(); }").size(), 1U);
}

}  // namespace
}  // namespace echolo::mutation
