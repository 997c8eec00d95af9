// docs/host-api.md lists what the libraries that programs link against export, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/text.hpp"
#include "judge/elf.hpp"

namespace echolo::judge {
namespace {

const std::string kPage = std::string(ECHOLO_SOURCE_DIR) + "/docs/host-api.md";

std::vector<std::string> exported(const std::string& library) {
  const Result<DynamicSymbols> symbols =
      read_dynamic_symbols(std::string(ECHOLO_BINARY_DIR) + "/lib/pe/" + library);
  EXPECT_TRUE(symbols.ok());
  return symbols.ok() ? symbols->exported : std::vector<std::string>{};
}

// "nvshmem_float_put" and its like for other types are one line of the page.
std::string general(const std::string& name) {
  static const std::regex type(
      "_(bfloat16|half|float|double|char|schar|short|int|long|longlong|uchar|ushort|uint|ulong|ulonglong|"
      "int8|int16|int32|int64|uint8|uint16|uint32|uint64|size|ptrdiff)_");
  static const std::regex size("(put|get)(8|16|32|64|128)(?![0-9])");
  static const std::regex reduction("_(and|or|xor|max|min|sum|prod)_(reduce|reducescatter)");
  std::string out = std::regex_replace(name, type, "_TYPE_", std::regex_constants::format_first_only);
  out = std::regex_replace(out, size, "$1SIZE");
  return std::regex_replace(out, reduction, "_OP_$2");
}

struct Group {
  const char* title;
  const char* pattern;  // of the whole name; the first that fits counts
};

const std::vector<Group> kRuntime = {
    {"graphs",
     "cuda(Graph|StreamBeginCapture|StreamEndCapture|StreamIsCapturing|StreamGetCaptureInfo|"
     "StreamUpdateCapture|ThreadExchange).*"},
    {"pools",
     "cuda(MemPool|MallocAsync|MallocFromPool|FreeAsync|DeviceGetDefaultMemPool|Device[GS]etMemPool).*"},
    {"IPC", "cudaIpc.*"},
    {"streams and events", "cuda(Stream|Event|LaunchHostFunc).*"},
    {"kernels", "cuda(Launch|Func|Occupancy|GetKernel|GetFuncBySymbol).*"},
    {"copies and fills", "cuda(Memcpy|Memset).*"},
    {"memory", "cuda(Malloc|Free|Host|Mem|Pointer|GetSymbol).*"},
    {"textures", "cuda(CreateTexture|DestroyTexture|CreateChannel).*"},
    {"device", "cuda(Device|GetDevice|SetDevice|Init|DriverGetVersion|RuntimeGetVersion).*"},
    {"errors", "cuda(GetError|GetLastError|PeekAtLastError).*"},
    {"others", "cuda.*"}};
const std::vector<Group> kDriver = {
    {"initialisation, devices, contexts", "cu(Init|Driver|Device|Ctx).*"},
    {"pools", "cu(MemPool|MemAllocAsync|MemAllocFromPool|MemFreeAsync).*"},
    {"virtual memory",
     "cuMem(AddressReserve|AddressFree|Create|Release|Map|Unmap|SetAccess|GetAccess|Retain|"
     "GetAllocation|Export|Import).*"},
    {"IPC", "cuIpc.*"},
    {"copies and fills", "cu(Memcpy|Memset).*"},
    {"memory", "cu(Mem|Pointer).*"},
    {"modules, functions, launches", "cu(Module|Library|Kernel|Func|Launch|Occupancy).*"},
    {"streams, events, words", "cu(Stream|Event|Thread).*"},
    {"graphs", "cuGraph.*"},
    {"tensor maps", "cuTensorMap.*"},
    {"errors and entry points", "cu.*"}};
const std::vector<Group> kShmem = {
    {"start and end",
     "nvshmemx?_(init|finalize|query|global|hostlib|get_uniqueid|set_attr|info|vendor|status).*"},
    {"symmetric memory", "nvshmemx?_(malloc|calloc|align|free|ptr|mc_ptr|buffer).*"},
    {"teams", "nvshmem_(team|my_pe|n_pes).*"},
    {"modules and launches", "nvshmemx_(cumodule|culibrary|collective).*"},
    {"on streams", "nvshmemx_.*_on_stream"},
    {"collectives", "nvshmemx?_.*(alltoall|broadcast|fcollect|reduce|reducescatter|barrier|sync).*"},
    {"atomics", "nvshmemx?_.*_atomic_.*"},
    {"memory, signals, order", "nvshmemx?_.*"}};

std::string table(const std::set<std::string>& names, const std::vector<Group>& groups) {
  std::map<std::string, std::set<std::string>> sorted;
  for (const std::string& name : names) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
      return std::regex_match(name, std::regex(one.pattern));
    });
    EXPECT_NE(group, groups.end()) << name;
    if (group != groups.end()) sorted[group->title].insert(name);
  }
  std::string out = "| group | calls |\n|---|---|\n";
  for (const Group& group : groups) {
    std::string row;
    for (const std::string& name : sorted[group.title]) row += (row.empty() ? "`" : ", `") + name + "`";
    if (!row.empty()) out += "| " + std::string(group.title) + " | " + row + " |\n";
  }
  return out;
}

std::string with_table(std::string page, const std::string& mark, const std::string& text) {
  const std::string begin = "<!-- begin " + mark + " -->\n", end = "<!-- end " + mark + " -->";
  const std::size_t from = page.find(begin), to = page.find(end);
  EXPECT_TRUE(from != std::string::npos && to != std::string::npos && from < to) << mark;
  if (from == std::string::npos || to == std::string::npos || from > to) return page;
  return page.replace(from + begin.size(), to - from - begin.size(), text);
}

TEST(HostApi, PageListsWhatTheLibrariesExport) {
  std::set<std::string> runtime, driver, shmem;
  for (const std::string& name : exported("libcudart.so")) {
    if (name.rfind("cuda", 0) == 0)
      runtime.insert(name);
    else if (name.rfind("cu", 0) == 0)
      driver.insert(name);
    else
      EXPECT_EQ(name.rfind("__cuda", 0), 0U) << name;  // what the compiler's host code calls
  }
  for (const std::string& name : exported("libnvshmem_host.so")) shmem.insert(general(name));
  ASSERT_GT(runtime.size(), 100U);
  ASSERT_GT(driver.size(), 100U);
  ASSERT_GT(shmem.size(), 60U);
  const Result<std::string> committed = read_file(kPage);
  ASSERT_TRUE(committed.ok());
  std::string page = with_table(*committed, "cudart", table(runtime, kRuntime));
  page = with_table(std::move(page), "cuda", table(driver, kDriver));
  page = with_table(std::move(page), "nvshmem", table(shmem, kShmem));
  if (std::getenv("ECHOLO_UPDATE_DOCS") != nullptr) {
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_TRUE(page == *committed) << "docs/host-api.md is not what the libraries export today; "
                                     "ECHOLO_UPDATE_DOCS=1 build/tests/test_judge "
                                     "--gtest_filter=HostApi.* writes it";
}

// One library under both names: a program that opens the driver by hand gets the same one.
TEST(HostApi, DriverIsTheRuntimesLibrary) {
  EXPECT_EQ(exported("libcuda.so"), exported("libcudart.so"));
  EXPECT_EQ(exported("libcuda.so.1"), exported("libcudart.so"));
}

}  // namespace
}  // namespace echolo::judge
