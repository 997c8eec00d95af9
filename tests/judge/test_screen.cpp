#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text.hpp"
#include "judge/assembly.hpp"
#include "judge/macros.hpp"
#include "judge/screen.hpp"
#include "judge/tokens.hpp"

namespace echolo::judge {
namespace {

const std::string kHonest = R"(
#include <cuda_bf16.h>
#include <nvshmem.h>
#include <echolo/candidate.hpp>
#include <algorithm>
#include <cooperative_groups/reduce.h>
#define DEVICE __device__ __forceinline__
#define NAME(type) nvshmem_##type##_put
#define LOG(...) printf("x", ## __VA_ARGS__)
#if __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#endif
struct State { int epoch = 0; static __device__ int lane() { int x; asm("mov.u32 %0, %%laneid;" : "=r"(x)); return x; } };
namespace { namespace inner {
template <typename T> DEVICE T load(const T* p) { T v; asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p)); return v; }
} }
template <int (*F)(int)> __global__ void __launch_bounds__(256) kernel(int* p) {
  #pragma unroll
  for (int i = 0; i < 4; ++i) { if (p[i]) { asm volatile("membar.sys;" ::: "memory"); } }
}
#ifdef FAST
__device__ int pick(int a) {
#else
__device__ int pick(float a) {
#endif
  return [&] { asm volatile("nanosleep.u32 20;"); return 1; }(); }
extern "C" {
State* candidate_create(const echolo::Launch&) { return new State{}; } }
extern "C" void candidate_run(State*, const echolo::Launch& launch, echolo::TensorList, echolo::TensorList, cudaStream_t) {
  const char* s = "asm(\"nop\") #include </etc/passwd>"; /* asm("nop"); */ const char* r = R"x(asm("nop"))x"; // asm
  const char c = '"'; long n = 1'000'000; (void)s; (void)r; (void)c; (void)n; }
extern "C" void candidate_destroy(State* s) { delete s; }
)";

std::map<std::string, Gate> gates_of(const std::string& text, SourceKind kind = SourceKind::kCandidate) {
  std::map<std::string, Gate> out;
  for (Gate& gate : screen(text, "k.cu", kind)) out[gate.name] = gate;
  return out;
}

TEST(Screen, HonestCandidatePassesEveryGate) {
  for (const auto& [name, gate] : gates_of(kHonest))
    EXPECT_EQ(gate.result, "passed") << name << ": " << gate.evidence;
}

TEST(Screen, TheWholeKernelLibraryPasses) {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ECHOLO_SOURCE_DIR) + "/kernels")) {
    if (!entry.is_directory()) continue;
    ++n;
    const std::string text = *read_file((entry.path() / "kernel.cu").string());
    for (const auto& [name, gate] : gates_of(text)) {
      EXPECT_EQ(gate.result, "passed") << entry.path() << " " << name << ": " << gate.evidence;
    }
  }
  EXPECT_GE(n, 5);
}

struct Evasion {
  const char* what;
  const char* gate;
  const char* added;     // to an honest candidate, at the end
  const char* evidence;  // part of it
};

class Evasions : public ::testing::TestWithParam<Evasion> {};

TEST_P(Evasions, AreRefusedByTheirGate) {
  const Evasion& evasion = GetParam();
  const auto gates = gates_of(kHonest + evasion.added + "\n");
  const Gate& gate = gates.at(evasion.gate);
  EXPECT_EQ(gate.result, "refused") << evasion.what;
  EXPECT_NE(gate.evidence.find(evasion.evidence), std::string::npos) << gate.evidence;
}

constexpr Evasion kEvasions[] = {
    {"a header of the system", "includes", "#include <sys/socket.h>", "<sys/socket.h>"},
    {"an absolute path", "includes", "#include \"/etc/passwd\"", "absolute path"},
    {"a path out of an allowed folder", "includes", "#include <cuda/../../../secret.h>", "not among"},
    {"a file beside it", "includes", "#include \"helper.cuh\"", "not among"},
    {"a computed name", "includes", "#define H <unistd.h>\n#include H", "macro"},
    {"a digraph for the #", "includes", "%:include <unistd.h>", "<unistd.h>"},
    {"a splice inside the word", "includes", "#incl\\\nude <unistd.h>", "<unistd.h>"},
    {"a splice with blanks", "includes", "#inclu\\  \nde <unistd.h>", "<unistd.h>"},
    {"comments between the words", "includes", "/* */ # /* */ include /* */ <unistd.h>", "<unistd.h>"},
    {"include_next", "includes", "#include_next <nvshmem.h>", "include_next"},
    {"import", "includes", "#import <unistd.h>", "import"},
    {"asking for files", "includes", "#if __has_include(</etc/shadow>)\n#endif", "absolute path"},
    {"asking for files by string", "includes", "#if __has_include(\"/etc/shadow\")\n#endif", "absolute path"},
    {"a macro that pastes asm", "preprocessor", "#define P(a, b) a ## b", "pastes"},
    {"a macro that pastes one half", "preprocessor", "#define P(a) __a ## a", "__asm"},
    {"a paste through three pieces", "preprocessor", "#define P(a) _ ## a ## __", "pastes"},
    {"a paste of literals", "preprocessor", "#define P as ## m", "asm"},
    {"a paste by digraph", "preprocessor", "#define P as %:%: m", "asm"},
    {"_Pragma", "preprocessor", "#define P(x) _Pragma(#x)", "_Pragma"},
    {"a pragma with effects", "preprocessor", "#pragma GCC dependency \"/etc/passwd\"", "pragma GCC"},
    {"push_macro", "preprocessor", "#pragma push_macro(\"x\")", "push_macro"},
    {"lines that lie", "preprocessor", "#line 1 \"other.cu\"", "#line"},
    {"ident", "preprocessor", "#ident \"x\"", "#ident"},
    {"keyword redefined", "preprocessor", "#define return asm", "reserved"},
    {"__device__ redefined", "preprocessor", "#define __device__", "reserved"},
    {"__CUDA_ARCH__ undefined", "preprocessor", "#undef __CUDA_ARCH__", "reserved"},
    {"a qualifier undefined", "preprocessor", "#undef DEVICE", "DEVICE"},
    {"a macro that opens a body", "preprocessor", "#define OPEN {", "brace"},
    {"a trigraph", "preprocessor", "?\?=include <unistd.h>", "trigraph"},
    {"a universal character name", "preprocessor", "int \\u0061sm;", "universal"},
    {"#embed", "embedding", "const char data[] = {\n#embed </etc/passwd>\n};", "embed"},
    {".incbin", "embedding", "__device__ void f() { asm(\".inc\" \"bin \\\"x\\\"\"); }", ".incbin"},
    {"a section with text behind", "attributes", "__attribute__((section(\".x#\"))) int x;", "section"},
    {"a constructor", "attributes", "__attribute((__constructor__)) void f();", "constructor"},
    {"a constructor the new way", "attributes", "[[gnu::constructor]] void f();", "constructor"},
    {"an alias", "attributes", "void g() __attribute__((alias(\"write\")));", "alias"},
    {"through a macro", "attributes", "#define S section\n__attribute__((S(\"x\"))) int x;", "attribute S"},
    {"assembly in a host function", "host_assembly", "void f() { asm(\"nop\"); }", "outside"},
    {"__asm__", "host_assembly", "void f() { __asm__ volatile(\"nop\"); }", "outside"},
    {"a splice inside asm", "host_assembly", "void f() { a\\\nsm(\"nop\"); }", "outside"},
    {"assembly at file scope", "host_assembly", "asm(\".globl write\");", "outside"},
    {"a name in assembly", "host_assembly", "extern \"C\" int f() asm(\"write\");", "outside"},
    {"both sides", "host_assembly", "__host__ __device__ void f() { asm(\"nop\"); }", "outside"},
    {"a macro", "host_assembly", "#define NOP asm(\"nop\")\nvoid f() { NOP; }", "through macro NOP"},
    {"a macro of a macro", "host_assembly",
     "#define NOP asm(\"nop\")\n#define AGAIN NOP\nvoid f() { AGAIN; }", "through macro AGAIN"},
    {"a qualifier of one branch", "host_assembly",
     "#ifdef __CUDA_ARCH__\n__device__\n#endif\nvoid f() { asm(\"nop\"); }", "outside"},
    {"a qualifier macro of one branch", "host_assembly",
     "#ifdef __CUDA_ARCH__\n#define D __device__\n#else\n#define D\n#endif\nD void f() { asm(\"nop\"); }",
     "outside"},
    {"a device head in the last branch", "host_assembly",
     "#ifndef __CUDA_ARCH__\nvoid f() {\n#else\n__device__ void f() {\n#endif\nasm(\"nop\"); }", "outside"},
    {"a qualifier in a part of each branch", "host_assembly",
     "#ifdef A\n#ifdef B\n__device__\n#endif\nvoid f() {\n#else\n__device__ void f() "
     "{\n#endif\nasm(\"nop\"); }",
     "outside"},
    {"a brace that is not compiled", "host_assembly",
     "__device__ void f() {\n#if 0\n{\n#endif\n}\nvoid g() { asm(\"nop\"); }", "brackets"},
    {"a declaration that ends early", "host_assembly",
     "#define M a(); void h()\n__device__ void M { asm(\"nop\"); }", "outside"},
    {"a semicolon in an argument", "host_assembly",
     "#define M(x) a() x void h()\n__device__ void M(;) { asm(\"nop\"); }", "outside"},
    {"a qualifier that is dropped", "host_assembly",
     "#define DROP(x)\nDROP(__device__) void f() { asm(\"nop\"); }", "outside"},
    {"a lambda in host code", "host_assembly", "void f() { auto g = [] { asm(\"nop\"); }; g(); }", "outside"},
    {"a host method of a class", "host_assembly",
     "struct __align__(8) X { __device__ int a(); void f() { asm(\"nop\"); } };", "outside"},
    {"after an unbalanced argument", "host_assembly", "#define DROP(x)\nDROP({) void f() {}", "brackets"},
};
INSTANTIATE_TEST_SUITE_P(All, Evasions, ::testing::ValuesIn(kEvasions));

TEST(Screen, MissingFunctionsAreNamed) {
  std::string text = kHonest;
  text.replace(text.find("candidate_destroy"), 17, "candidate_destroi");
  const Gate gate =
      gates_of(text + "// candidate_destroy\nconst char* x = \"candidate_destroy\";\n").at("interface");
  EXPECT_EQ(gate.result, "refused");
  EXPECT_NE(gate.evidence.find("candidate_destroy"), std::string::npos);
}

TEST(Screen, OnlyReadableTextOfBoundedSize) {
  EXPECT_EQ(gates_of(kHonest + "\xff").at("readable").result, "refused");
  EXPECT_EQ(gates_of(kHonest + std::string(1, '\0')).at("readable").result, "refused");
  EXPECT_EQ(gates_of(kHonest + std::string(kMaxSourceBytes, ' ')).at("readable").result, "refused");
  EXPECT_EQ(gates_of(kHonest + "// \xc3\xa9\xe2\x82\xac\n").at("readable").result, "passed");
}

TEST(Screen, GatesAreAlwaysTheSameInTheSameOrder) {
  const auto names = [](const std::vector<Gate>& gates) {
    std::vector<std::string> out;
    for (const Gate& gate : gates) out.push_back(gate.name);
    return out;
  };
  const auto honest = names(screen(kHonest, "k.cu", SourceKind::kCandidate));
  EXPECT_EQ(honest, names(screen("\xff", "k.cu", SourceKind::kCandidate)));
  EXPECT_EQ(honest, names(screen("int main() {}", "k.cu", SourceKind::kProgram)));
}

TEST(Screen, ProgramsMayIncludeTheirOwnFolder) {
  const std::string program =
      "#include \"part/helper.cuh\"\n#include <unistd.h>\nint main() { asm(\"nop\"); }\n";
  for (const auto& [name, gate] : gates_of(program, SourceKind::kProgram))
    EXPECT_NE(gate.result, "refused") << name;
  EXPECT_EQ(gates_of("#include \"../x.h\"\nint main() {}", SourceKind::kProgram).at("includes").result,
            "refused");
  EXPECT_EQ(gates_of("int mian() {}", SourceKind::kProgram).at("interface").result, "refused");
}

TEST(Screen, UnknownFunctionBodiesInMacrosStayUsable) {
  // Statement macros with balanced braces, as every kernel library has them.
  const std::string text = kHonest + R"(
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { abort(); } } while (0)
#define FENCE() asm volatile("fence.acq_rel.sys;" ::: "memory")
__device__ void f() { FENCE(); }
void g() { CHECK(cudaDeviceSynchronize()); }
)";
  for (const auto& [name, gate] : gates_of(text))
    EXPECT_EQ(gate.result, "passed") << name << ": " << gate.evidence;
}

TEST(Tokens, PlacesAreThoseOfTheFile) {
  const TokenStream stream = tokenize("a \\\n  b\n\"x\\\"y\" R\"(raw\n)\" c");
  ASSERT_EQ(stream.tokens.size(), 5U);
  EXPECT_EQ(stream.tokens[1].text, "b");
  EXPECT_EQ(stream.tokens[1].line, 2);
  EXPECT_EQ(stream.tokens[1].column, 3);
  EXPECT_FALSE(stream.tokens[1].starts_line);
  EXPECT_EQ(stream.tokens[2].text, "x\\\"y");
  EXPECT_EQ(stream.tokens[3].text, "raw\n");
  EXPECT_EQ(stream.tokens[4].line, 4);
  EXPECT_TRUE(stream.faults.empty());
}

// However many pieces a candidate pastes, the answer comes at once.
TEST(Macros, PastesOfManyPiecesAreDecidedAtOnce) {
  std::string pieces;
  for (int i = 0; i < 100'000; ++i) pieces += "a##";
  const auto pasted = [](const std::string& text) {
    return dangerous_paste(read_macros(directives_of(tokenize(text).tokens)).macros.at(0));
  };
  EXPECT_EQ(pasted("#define P(a) " + pieces + "Z\n"), "");
  EXPECT_EQ(pasted("#define P(a) " + pieces + "m\n"), "asm");
  EXPECT_EQ(pasted("#define P(a) _##a##_##a##Z##a\n"), "");
  EXPECT_EQ(pasted("#define P(a) __##a##vice##a\n"), "__device__");
  EXPECT_EQ(pasted("#define P(a) as##a##m##m\n"), "");
}

TEST(Tokens, AnyBytesAreRead) {
  std::uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const std::string alphabet = "a#\"'\\\n/*R(){}<>%:?= \t0.x";
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525U + 1013904223U;
      text += alphabet[(state >> 16U) % alphabet.size()];
    }
    const TokenStream stream = tokenize(text);
    EXPECT_LE(stream.tokens.size(), text.size());
    (void)screen(text, "k.cu", SourceKind::kCandidate);
  }
}

TEST(HostCode, AssemblyOfTheSourceIsFoundOutsideOfDeviceBodies) {
  const std::string code =
      "# 1 \"/usr/include/x.h\"\nint f() __asm__(\"y\");\n# 7 \"candidate.cu\"\nint lane() {}\n#if 0\n# 8\n"
      "{ __asm__ volatile(\"nop\"); }\n#endif\n# 9 \"candidate.cu\"\nint plasma = 1;\n";
  EXPECT_EQ(assembly_line_in_host_code(code, "candidate.cu"), 0);
  EXPECT_EQ(assembly_line_in_host_code(code + "# 12\nvoid g() {\n__asm__(\"nop\"); }\n", "candidate.cu"), 13);
}

}  // namespace
}  // namespace echolo::judge
