#include "random_kernel_run.hpp"

#include "vgpu/core/machine.hpp"

namespace echolo::vgpu {
namespace {

std::string differences(const std::vector<std::uint32_t>& got, const std::vector<std::uint32_t>& want,
                        const std::string& what) {
  std::string text;
  int shown = 0;
  for (std::size_t i = 0; i < want.size() && shown < 4; ++i) {
    if (got[i] == want[i]) continue;
    ++shown;
    text += what + "[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", not " +
            std::to_string(want[i]) + "\n";
  }
  return text;
}

}  // namespace

std::string run_random_kernel(const RandomKernel& kernel, Policy policy, std::uint64_t seed) {
  MachineConfig config;
  config.policy = policy;
  config.seed = seed;
  auto made = Machine::create(config, nullptr);
  if (!made.ok()) return made.error().render();
  Machine& machine = **made;
  const auto module = machine.load_module(0, kernel.ptx, "random");
  if (!module.ok()) return module.error().render();
  const Site site = make_host_site(0, "copy");
  Memory::Accessor who;
  who.site = &site;
  who.pe = 0;
  who.what = "test";
  LaunchRequest request;
  std::uint64_t addresses[3] = {};
  const std::vector<std::uint32_t> blank(kernel.out.size(), 0xdeadbeefU);
  const std::vector<std::uint32_t>* contents[] = {&kernel.in, &blank, &kernel.acc};
  for (int i = 0; i < 3; ++i) {
    const auto address = machine.memory().allocate(0, contents[i]->size() * 4, 256, AllocationKind::kDevice,
                                                   "words", "test", "");
    if (!address.ok()) return address.error().render();
    addresses[i] = *address;
    machine.memory().write(*address, contents[i]->data(), contents[i]->size() * 4, who);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&addresses[i]);
    request.params.insert(request.params.end(), bytes, bytes + 8);
  }
  request.module = *module;
  request.kernel = "k";
  request.grid = {kernel.blocks, 1, 1};
  request.block = {kernel.threads, 1, 1};
  const auto launched = machine.launch(request);
  if (!launched.ok()) return launched.error().render();
  Machine::Progress progress = Machine::Progress::kRan;
  for (int i = 0; i < 100 && progress == Machine::Progress::kRan; ++i) progress = machine.run(1'000'000);
  if (progress == Machine::Progress::kStuck) machine.explain_stuck({}, false);
  std::string text;
  for (const Finding& finding : machine.findings().all()) text += render(finding, {});
  if (!text.empty()) return text;
  if (!machine.finished(*launched)) return "the kernel does not end\n";
  std::vector<std::uint32_t> out(kernel.out.size()), acc(kernel.acc.size());
  machine.memory().read(addresses[1], out.data(), out.size() * 4, who);
  machine.memory().read(addresses[2], acc.data(), acc.size() * 4, who);
  return differences(out, kernel.out, "out") + differences(acc, kernel.acc_out, "acc");
}

}  // namespace echolo::vgpu
