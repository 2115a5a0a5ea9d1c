// SPDX-License-Identifier: Apache-2.0
// The placement report as text and as JSON.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <tenon/program.h>

#include "core/counted.h"
#include "yaml/json.h"

namespace tenon {

DeviceByNode PlacementReport::device_by_node() const {
  DeviceByNode devices;
  for (const Placement& placement : nodes) devices[placement.node] = placement.device;
  return devices;
}

std::size_t PlacementReport::moved() const {
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const Placement& p) { return !p.reason.empty() && !p.device.empty(); }));
}

std::vector<std::pair<DType, std::size_t>> PlacementReport::nodes_by_dtype() const {
  std::map<DType, std::size_t> counts;
  for (const Placement& placement : nodes) ++counts[placement.dtype];
  std::vector<std::pair<DType, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string PlacementReport::str() const {
  struct Column {
    const char* title;
    std::string (*text)(const Placement&);
  };
  static constexpr Column columns[] = {{"node", [](const Placement& p) { return p.node; }},
                                       {"op", [](const Placement& p) { return p.op; }},
                                       {"dtype", [](const Placement& p) { return std::string(name_of(p.dtype)); }},
                                       {"requested", [](const Placement& p) { return p.requested; }},
                                       {"device", [](const Placement& p) { return p.device.empty() ? "none" : p.device; }},
                                       {"kernel", [](const Placement& p) { return p.algorithm; }},
                                       {"reason", [](const Placement& p) { return p.reason; }}};
  std::vector<Placement> shown = nodes;
  for (Placement& p : shown) {
    if (p.once) p.reason = p.reason.empty() ? "runs when parameters change" : p.reason + "; runs when parameters change";
  }
  std::string header;
  std::vector<std::string> rows(shown.size());
  for (const Column& column : columns) {
    std::size_t width = std::string_view(column.title).size();
    for (const Placement& p : shown) width = std::max(width, column.text(p).size());
    header += fmt::format("{:<{}}  ", column.title, width);
    for (std::size_t i = 0; i < shown.size(); ++i) rows[i] += fmt::format("{:<{}}  ", column.text(shown[i]), width);
  }
  const auto line = [](const std::string& text) { return text.substr(0, text.find_last_not_of(' ') + 1) + "\n"; };
  std::string text = line(header);
  for (const std::string& row : rows) text += line(row);
  for (const PlannedCopy& copy : copies)
    text += fmt::format("copy {}: {} -> {}, {}\n", copy.value, copy.from, copy.to, counted(copy.size_bytes, "byte"));
  for (const DenseCopy& copy : dense_copies)
    text += fmt::format("copy {}: dense on {}, {}: {}\n", copy.value, copy.device, counted(copy.size_bytes, "byte"), copy.reason);
  const auto failing = std::ranges::count_if(nodes, [](const Placement& p) { return p.device.empty(); });
  if (failing > 0) {
    return text + fmt::format(
                      "{} of {} {} no device, for the reasons given: a run fails. Choose another --device, place {} "
                      "with `placement`, or set fallback: warn or allow\n",
                      failing, counted(nodes.size(), "node"), failing == 1 ? "has" : "have", failing == 1 ? "it" : "them");
  }
  text += fmt::format(
      "{}, {} moved; {}, {}; {} between devices, {} a run\n"
      "workspace {}, packed {}{}\n",
      counted(nodes.size(), "node"), moved(), counted(partitions, "partition"), counted(kernels, "kernel"),
      counted(copies_inserted, "copy", "copies"), counted(bytes_copied_per_run, "byte"), counted(workspace_size_bytes, "byte"),
      counted(packed_size_bytes, "byte"),
      shared_packed_size_bytes == 0 ? ""
                                    : fmt::format(", of these {} shared with programs of the same parameters", shared_packed_size_bytes));
  if (collectives > 0)
    text += fmt::format("{} over ranks{}, {} a run\n", counted(collectives, "sum"), reduced_by.empty() ? "" : " by " + reduced_by,
                        counted(bytes_reduced_per_run, "byte"));
  if (broadcasts > 0)
    text += fmt::format("{} among ranks, {} a run\n", counted(broadcasts, "broadcast"), counted(bytes_broadcast_per_run, "byte"));
  std::string dtypes;
  for (const auto& [dtype, count] : nodes_by_dtype())
    dtypes += fmt::format("{}{} in {}", dtypes.empty() ? "" : ", ", count, name_of(dtype));
  if (!dtypes.empty()) text += fmt::format("computed: {}\n", dtypes);
  if (!replay.empty()) text += fmt::format("replay: {}; {} recorded, {} replayed\n", replay, records, replays);
  return text;
}

std::string PlacementReport::mapping() const {
  std::set<std::string> reporting;  // devices whose backend names its kernels
  for (const Placement& p : nodes) {
    if (!p.algorithm.empty()) reporting.insert(p.device);
  }
  std::string text;
  for (const Placement& p : nodes) {
    const char* none = reporting.contains(p.device) ? "no kernel of its own" : "kernel not reported";
    text += fmt::format("op {} '{}' in device {} ({})\n", p.op, p.node, p.device, p.algorithm.empty() ? none : p.algorithm);
  }
  return text;
}

std::string PlacementReport::json() const {
  Json node_list = Json::array(), copy_list = Json::array(), dense_list = Json::array();
  for (const Placement& p : nodes) {
    node_list.push_back({{"node", p.node},
                         {"op", p.op},
                         {"dtype", name_of(p.dtype)},
                         {"requested", p.requested},
                         {"device", p.device.empty() ? Json() : Json(p.device)},
                         {"algorithm", p.algorithm},
                         {"reason", p.reason},
                         {"output_size_bytes", p.output_size_bytes},
                         {"once", p.once},
                         {"inputs", p.inputs}});
  }
  for (const PlannedCopy& copy : copies)
    copy_list.push_back({{"value", copy.value}, {"from", copy.from}, {"to", copy.to}, {"size_bytes", copy.size_bytes}});
  for (const DenseCopy& copy : dense_copies)
    dense_list.push_back({{"value", copy.value}, {"device", copy.device}, {"reason", copy.reason}, {"size_bytes", copy.size_bytes}});
  return json_text(Json{{"nodes", node_list},
                        {"copies", copy_list},
                        {"dense_copies", dense_list},
                        {"moved", moved()},
                        {"partitions", partitions},
                        {"kernels", kernels},
                        {"copies_inserted", copies_inserted},
                        {"bytes_copied_per_run", bytes_copied_per_run},
                        {"workspace_size_bytes", workspace_size_bytes},
                        {"packed_size_bytes", packed_size_bytes},
                        {"shared_packed_size_bytes", shared_packed_size_bytes},
                        {"collectives", collectives},
                        {"bytes_reduced_per_run", bytes_reduced_per_run},
                        {"broadcasts", broadcasts},
                        {"bytes_broadcast_per_run", bytes_broadcast_per_run},
                        {"reduced_by", reduced_by},
                        {"replay", replay},
                        {"records", records},
                        {"replays", replays}},
                   1) +
         "\n";
}

}  // namespace tenon
