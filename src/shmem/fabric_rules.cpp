#include "shmem/fabric_rules.hpp"

#include <array>
#include <functional>

#include "base/text.hpp"

namespace echolo::shmem {
namespace {

constexpr std::array<FabricRules, 2> kFabrics = {{
    {"nvlink", true, true, 16, 1U << 13U, true, true},
    {"rdma", true, true, 4096, 1U << 15U, false, false},
}};

struct Row {
  const char* question;
  std::function<std::string(const FabricRules&)> answer;
};

const char* yes_no(bool yes) { return yes ? "yes" : "no"; }

std::array<Row, 9> rows() {
  return {{
      {"may a put be done before an earlier put to the same PE, without a fence between",
       [](const FabricRules& f) { return yes_no(f.puts_overtake); }},
      {"may an atomic, `p` or signal be done before an earlier put, or after a later one",
       [](const FabricRules& f) { return yes_no(f.atomics_overtake); }},
      {"may the signal of a put-with-signal be done before its own data",
       [](const FabricRules&) { return "no"; }},
      {"a put may be seen in pieces of",
       [](const FabricRules& f) { return with_commas(f.granule) + " bytes"; }},
      {"what nobody waits for is done after, at most (warp instructions, policies fair and random)",
       [](const FabricRules& f) { return with_commas(f.longest_delay); }},
      {"`nvshmem_ptr` of another PE",
       [](const FabricRules& f) { return f.peers_reachable ? "its address" : "null"; }},
      {"a plain load or store of a peer's memory",
       [](const FabricRules& f) { return f.peers_reachable ? "as PTX orders it" : "`out-of-bounds`"; }},
      {"an `ld.acquire.sys` that sees a signal orders what follows",
       [](const FabricRules& f) { return f.acquire_sees_signal ? "yes" : "no: `wrong-wait`"; }},
      {"a plain, volatile or relaxed load that sees a signal orders what follows",
       [](const FabricRules& f) {
         return f.acquire_sees_signal ? "no: `wrong-wait`, unless a fence follows" : "no: `wrong-wait`";
       }},
  }};
}

}  // namespace

std::span<const FabricRules> fabrics() { return kFabrics; }

Result<const FabricRules*> find_fabric(std::string_view name) {
  for (const FabricRules& fabric : kFabrics) {
    if (fabric.name == name) return &fabric;
  }
  return usage_error("unknown fabric '" + std::string(name) + "'", "nvlink or rdma");
}

std::string fabric_table() {
  std::string out = "| |";
  for (const FabricRules& fabric : kFabrics) out += " " + std::string(fabric.name) + " |";
  out += "\n|---|";
  for (std::size_t i = 0; i < kFabrics.size(); ++i) out += "---|";
  out += "\n";
  for (const Row& row : rows()) {
    out += "| " + std::string(row.question) + " |";
    for (const FabricRules& fabric : kFabrics) out += " " + row.answer(fabric) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace echolo::shmem
