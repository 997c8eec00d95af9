// JobWork as a file, on its way from the node to whoever models its time.
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "vgpu/work.hpp"

namespace echolo::vgpu {
namespace {

using nlohmann::json;

json of(const Stretch& s) {
  json peers = json::array();
  for (const PeerTraffic& peer : s.work.peers)
    peers.push_back({peer.pe, peer.bytes_out, peer.bytes_in, peer.messages});
  return json::array({s.block, s.work.issued, s.work.tensor_flops, s.work.shared_wavefronts, s.work.l2_bytes,
                      s.work.dram_bytes, std::move(peers), s.causes, s.waited_at, s.at_barrier,
                      static_cast<int>(s.phase)});
}

Stretch stretch_of(const json& in) {
  Stretch s;
  s.block = in.at(0).get<std::uint32_t>();
  s.work.issued = in.at(1).get<std::array<std::uint64_t, kPipes>>();
  s.work.tensor_flops = in.at(2).get<std::uint64_t>();
  s.work.shared_wavefronts = in.at(3).get<std::uint64_t>();
  s.work.l2_bytes = in.at(4).get<std::uint64_t>();
  s.work.dram_bytes = in.at(5).get<std::uint64_t>();
  for (const json& peer : in.at(6)) {
    s.work.peers.push_back({peer.at(0).get<int>(), peer.at(1).get<std::uint64_t>(),
                            peer.at(2).get<std::uint64_t>(), peer.at(3).get<std::uint64_t>()});
  }
  s.causes = in.at(7).get<std::vector<std::uint32_t>>();
  s.waited_at = in.at(8).get<std::string>();
  s.at_barrier = in.at(9).get<bool>();
  s.phase = static_cast<Phase>(in.at(10).get<int>());
  return s;
}

}  // namespace

Status write_work(const JobWork& work, const std::string& path) {
  json launches = json::array(), blocks = json::array(), stretches = json::array();
  for (const LaunchWork& l : work.launches)
    launches.push_back(json::array({l.pe, l.call, l.kernel, l.blocks_per_sm, l.after, l.blocks}));
  for (const BlockWork& b : work.blocks)
    blocks.push_back(json::array({b.launch, b.index, b.warps, b.stretches}));
  for (const Stretch& s : work.stretches) stretches.push_back(of(s));
  const json all = {{"n_pes", work.n_pes},
                    {"launches", std::move(launches)},
                    {"blocks", std::move(blocks)},
                    {"stretches", std::move(stretches)}};
  std::string bytes;
  json::to_cbor(all, bytes);
  return write_file_atomically(path, bytes);
}

Result<JobWork> read_work(const std::string& path) {
  const Result<std::string> bytes = read_file(path);
  if (!bytes) return bytes.error();
  try {
    const json in = json::from_cbor(*bytes);
    JobWork work;
    work.n_pes = in.at("n_pes").get<int>();
    for (const json& one : in.at("launches")) {
      work.launches.push_back({one.at(0).get<int>(), one.at(1).get<int>(), one.at(2).get<std::string>(),
                               one.at(3).get<int>(), one.at(4).get<std::vector<std::uint32_t>>(),
                               one.at(5).get<std::vector<std::uint32_t>>()});
    }
    for (const json& one : in.at("blocks")) {
      work.blocks.push_back({one.at(0).get<std::uint32_t>(), one.at(1).get<std::uint32_t>(),
                             one.at(2).get<std::uint32_t>(), one.at(3).get<std::vector<std::uint32_t>>()});
    }
    for (const json& one : in.at("stretches")) work.stretches.push_back(stretch_of(one));
    return work;
  } catch (const json::exception& e) {
    return machine_error(path + " is no recorded work: " + e.what());
  }
}

}  // namespace echolo::vgpu
