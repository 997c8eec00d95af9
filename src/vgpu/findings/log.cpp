// Names of finding kinds and the log that merges repeated sights.
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "vgpu/finding.hpp"

namespace echolo::vgpu {

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDataRace:
      return "data-race";
    case FindingKind::kScopeTooNarrow:
      return "scope-too-narrow";
    case FindingKind::kMissingOrder:
      return "missing-order";
    case FindingKind::kSourceReuse:
      return "source-reuse";
    case FindingKind::kWrongWait:
      return "wrong-wait";
    case FindingKind::kUninitialisedRead:
      return "uninitialised-read";
    case FindingKind::kOutOfBounds:
      return "out-of-bounds";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kHostDereference:
      return "host-dereference";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kLivelock:
      return "livelock";
    case FindingKind::kBarrierDivergence:
      return "barrier-divergence";
    case FindingKind::kResidency:
      return "residency";
    case FindingKind::kCollectiveMismatch:
      return "collective-mismatch";
    case FindingKind::kSymmetricMismatch:
      return "symmetric-mismatch";
    case FindingKind::kStaleState:
      return "stale-state";
    case FindingKind::kEarlyExit:
      return "early-exit";
    case FindingKind::kNondeterministic:
      return "nondeterministic";
    case FindingKind::kLeak:
      return "leak";
    case FindingKind::kDeviceTrap:
      return "device-trap";
  }
  return "unknown";
}

std::string status_of(FindingKind kind) {
  if (kind == FindingKind::kDeviceTrap) return "crashed";
  std::string status(name_of(kind));
  for (char& c : status) {
    if (c == '-') c = '_';
  }
  return status;
}

namespace {

// What makes two sights the same finding. Sites without a line are told apart by what else names them.
std::string merge_key(const Finding& finding) {
  std::string key(name_of(finding.kind));
  bool placed = false;
  for (const Site& site : finding.sites) {
    key += '\n' + site.role + '\t';
    if (site.where.line > 0) {
      key += site.where.file + '\t' + std::to_string(site.where.line);
      placed = true;
    } else {
      key += site.where.function + '\t' + site.kernel + '\t' + std::to_string(site.pe);
    }
    if (!site.waits_for.empty()) key += '\t' + std::to_string(site.pe) + '\t' + site.waits_for;
  }
  if (!placed) key += '\n' + finding.message + '\n' + finding.address.object;
  return key;
}

}  // namespace

std::size_t FindingLog::add(Finding finding) {
  const std::string key = merge_key(finding);
  has_fatal_ = has_fatal_ || finding.fatal;
  const auto [at, fresh] = by_key_.try_emplace(key, findings_.size());
  if (!fresh) {
    Finding& known = findings_[at->second];
    known.count += finding.count;
    known.fatal = known.fatal || finding.fatal;
    return at->second;
  }
  finding.id = sha256_hex(key).substr(0, 16);
  findings_.push_back(std::move(finding));
  return at->second;
}

}  // namespace echolo::vgpu
