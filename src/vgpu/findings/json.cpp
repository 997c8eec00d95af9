// Findings as JSON: the form of a verdict's "findings".
#include <nlohmann/json.hpp>
#include <string>

#include "vgpu/finding.hpp"

namespace echolo::vgpu {

namespace {

using Json = nlohmann::json;

Json as_json(const Dim3& dim) { return Json::array({dim.x, dim.y, dim.z}); }

Dim3 dim_from(const Json& in, const char* key) {
  const auto at = in.find(key);
  if (at == in.end() || !at->is_array() || at->size() != 3) return {0, 0, 0};
  return {(*at)[0].get<std::uint32_t>(), (*at)[1].get<std::uint32_t>(), (*at)[2].get<std::uint32_t>()};
}

Json as_json(const Frame& frame) {
  return {{"file", frame.file}, {"line", frame.line}, {"column", frame.column}, {"function", frame.function}};
}

Frame frame_from(const Json& in) {
  return {in.value("file", ""), in.value("line", 0), in.value("column", 0), in.value("function", "")};
}

Json as_json(const Site& site) {
  Json out = as_json(site.where);
  out["role"] = site.role;
  out["pe"] = site.pe;
  out["on_device"] = site.on_device;
  out["block"] = as_json(site.block);
  out["thread"] = as_json(site.thread);
  out["inlined_at"] = Json::array();
  for (const Frame& frame : site.inlined_at) out["inlined_at"].push_back(as_json(frame));
  out["call"] = site.call;
  out["kernel"] = site.kernel;
  out["waits_for"] = site.waits_for;
  out["holds"] = site.holds;
  out["note"] = site.note;
  return out;
}

Site site_from(const Json& in) {
  Site site;
  site.where = frame_from(in);
  site.role = in.value("role", "");
  site.pe = in.value("pe", -1);
  site.on_device = in.value("on_device", true);
  site.block = dim_from(in, "block");
  site.thread = dim_from(in, "thread");
  if (const auto frames = in.find("inlined_at"); frames != in.end()) {
    for (const Json& frame : *frames) site.inlined_at.push_back(frame_from(frame));
  }
  site.call = in.value("call", 0);
  site.kernel = in.value("kernel", "");
  site.waits_for = in.value("waits_for", "");
  site.holds = in.value("holds", "");
  site.note = in.value("note", "");
  return site;
}

FindingKind kind_from(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(FindingKind::kDeviceTrap); ++i) {
    if (name_of(static_cast<FindingKind>(i)) == name) return static_cast<FindingKind>(i);
  }
  throw Json::other_error::create(501, "unknown finding kind \"" + name + "\"", nullptr);
}

}  // namespace

void to_json(Json& out, const Finding& finding) {
  out = Json::object();
  out["id"] = finding.id;
  out["kind"] = std::string(name_of(finding.kind));
  out["message"] = finding.message;
  out["why"] = finding.why;
  out["advice"] = finding.advice;
  out["count"] = finding.count;
  out["fatal"] = finding.fatal;
  out["sites"] = Json::array();
  for (const Site& site : finding.sites) out["sites"].push_back(as_json(site));
  if (finding.address.pe >= 0 || !finding.address.object.empty()) {
    out["address"] = {{"pe", finding.address.pe},
                      {"symbol_or_allocation", finding.address.object},
                      {"offset", finding.address.offset}};
  } else {
    out["address"] = nullptr;
  }
}

void from_json(const Json& in, Finding& finding) {
  finding = Finding{};
  finding.id = in.value("id", "");
  finding.kind = kind_from(in.at("kind").get<std::string>());
  finding.message = in.value("message", "");
  finding.why = in.value("why", "");
  finding.advice = in.value("advice", "");
  finding.count = in.value("count", std::uint64_t{1});
  finding.fatal = in.value("fatal", false);
  if (const auto sites = in.find("sites"); sites != in.end()) {
    for (const Json& site : *sites) finding.sites.push_back(site_from(site));
  }
  if (const auto address = in.find("address"); address != in.end() && address->is_object()) {
    finding.address.pe = address->value("pe", -1);
    finding.address.object = address->value("symbol_or_allocation", "");
    finding.address.offset = address->value("offset", std::int64_t{0});
  }
}

}  // namespace echolo::vgpu
