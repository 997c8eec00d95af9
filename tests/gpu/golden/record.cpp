// Runs every form of forms.txt on the GPU and writes the results into FOLDER. Needs the CUDA driver only (its
// library is opened at run time). See README.md.
//
//   golden_record forms.txt forms.cubin FOLDER
//   golden_record wgmma wgmma.cubin FOLDER
//
// A form's results: for each destination kThreads values as wide as the register, predicates one byte each.
//   h200.txt              the hash of each form's results, then the form
//   h200-approximate.bin  the results of the approximate forms, one after the other
//   raw-N.bin             the results of all forms, in parts
// Of wgmma: h200-wgmma.txt and raw-wgmma.bin, the registers of D, each of 128 threads.
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "golden.hpp"
#include "wgmma.hpp"

namespace {

using Device = int;
using Handle = void*;
using Pointer = unsigned long long;

template <typename Function>
Function symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "libcuda has no %s\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function>(found);
}

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, result);
  std::exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: golden_record forms.txt forms.cubin FOLDER\n";
    return 2;
  }
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) {
    std::cerr << dlerror() << "\n";
    return 3;
  }
  const auto init = symbol<int (*)(unsigned)>(cuda, "cuInit");
  const auto retain = symbol<int (*)(Handle*, Device)>(cuda, "cuDevicePrimaryCtxRetain");
  const auto set_current = symbol<int (*)(Handle)>(cuda, "cuCtxSetCurrent");
  const auto load = symbol<int (*)(Handle*, const void*)>(cuda, "cuModuleLoadData");
  const auto function_of = symbol<int (*)(Handle*, Handle, const char*)>(cuda, "cuModuleGetFunction");
  const auto allocate = symbol<int (*)(Pointer*, std::size_t)>(cuda, "cuMemAlloc_v2");
  const auto upload = symbol<int (*)(Pointer, const void*, std::size_t)>(cuda, "cuMemcpyHtoD_v2");
  const auto download = symbol<int (*)(void*, Pointer, std::size_t)>(cuda, "cuMemcpyDtoH_v2");
  const auto launch = symbol<int (*)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, Handle, void**, void**)>(cuda, "cuLaunchKernel");
  const auto synchronize = symbol<int (*)()>(cuda, "cuCtxSynchronize");

  std::ifstream cubin(argv[2], std::ios::binary);
  std::stringstream image;
  image << cubin.rdbuf();
  const std::string code = image.str();
  Handle context = nullptr, module = nullptr;
  check(init(0), "cuInit");
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(set_current(context), "cuCtxSetCurrent");
  check(load(&module, code.data()), "cuModuleLoadData");
  constexpr std::size_t kMost = 64 * 16 * golden::kThreads;
  Pointer in = 0, out = 0;
  check(allocate(&in, kMost), "cuMemAlloc");
  check(allocate(&out, kMost), "cuMemAlloc");

  const std::string folder = argv[3];
  if (std::string(argv[1]) == "wgmma") {
    std::ofstream hashes(folder + "/h200-wgmma.txt"), raw(folder + "/raw-wgmma.bin", std::ios::binary);
    const std::vector<golden::Wgmma> cases = golden::wgmma_cases();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::vector<unsigned char> input = golden::wgmma_input(cases[i], i);
      std::vector<char> output(static_cast<std::size_t>(cases[i].results) * 512);
      Handle function = nullptr;
      check(function_of(&function, module, ("w" + std::to_string(i)).c_str()), "cuModuleGetFunction");
      check(upload(in, input.data(), input.size()), "cuMemcpyHtoD");
      void* parameters[] = {&in, &out};
      check(launch(function, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
      check(synchronize(), golden::wgmma_name(cases[i], i).c_str());
      check(download(output.data(), out, output.size()), "cuMemcpyDtoH");
      raw.write(output.data(), static_cast<std::streamsize>(output.size()));
      char hash[17];
      std::snprintf(hash, sizeof(hash), "%016llx",
                    static_cast<unsigned long long>(golden::hash_of(output.data(), output.size())));
      hashes << hash << ' ' << golden::wgmma_name(cases[i], i) << '\n';
    }
    return 0;
  }

  std::ifstream forms(argv[1]);
  std::vector<unsigned char> operands, results;
  std::size_t index = 0, written = 0, part = 0;
  std::ofstream file, hashes(folder + "/h200.txt"),
      approximate(folder + "/h200-approximate.bin", std::ios::binary);
  for (std::string form; std::getline(forms, form); ++index) {
    const golden::Case c = golden::make_case(form);
    const std::size_t stride = 16 * golden::kThreads;
    operands.assign(c.sources.size() * stride, 0);
    for (std::size_t s = 0; s < c.sources.size(); ++s) {
      for (int t = 0; t < golden::kThreads; ++t) {
        const auto value = golden::make_operand(form, c.sources[s], s, t);
        std::memcpy(operands.data() + s * stride + static_cast<std::size_t>(t) * 16, value.data(), 16);
      }
    }
    Handle function = nullptr;
    check(function_of(&function, module, ("g" + std::to_string(index)).c_str()), "cuModuleGetFunction");
    if (!operands.empty()) check(upload(in, operands.data(), operands.size()), "cuMemcpyHtoD");
    void* parameters[] = {&in, &out};
    check(launch(function, 1, 1, 1, golden::kThreads, 1, 1, 0, nullptr, parameters, nullptr),
          "cuLaunchKernel");
    check(synchronize(), form.c_str());
    results.resize(c.destinations.size() * stride);
    check(download(results.data(), out, results.size()), "cuMemcpyDtoH");
    if (!file.is_open() || written > (14U << 20U)) {
      file.close();
      file.open(folder + "/raw-" + std::to_string(part++) + ".bin", std::ios::binary);
      written = 0;
    }
    std::vector<char> packed;
    for (std::size_t d = 0; d < c.destinations.size(); ++d) {
      const int bits = golden::register_bits(c.destinations[d]);
      const std::size_t bytes = bits == 1 ? 1 : static_cast<std::size_t>(bits / 8);
      for (std::size_t t = 0; t < golden::kThreads; ++t) {
        const unsigned char* value = results.data() + d * stride + t * 16;
        packed.insert(packed.end(), value, value + bytes);
      }
    }
    file.write(packed.data(), static_cast<std::streamsize>(packed.size()));
    written += packed.size();
    char hash[17];
    std::snprintf(hash, sizeof(hash), "%016llx",
                  static_cast<unsigned long long>(golden::hash_of(packed.data(), packed.size())));
    hashes << hash << ' ' << form << '\n';
    if (golden::is_approximate(form))
      approximate.write(packed.data(), static_cast<std::streamsize>(packed.size()));
  }
  file.close();
  std::printf("%zu forms recorded\n", index);
  return index > 0 ? 0 : 3;
}
