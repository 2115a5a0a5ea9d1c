// SPDX-License-Identifier: Apache-2.0
// The placement report as text and as JSON.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include <tenon/program.h>

#include "core/table.h"
#include "exec/placement_text.h"
#include "text/counted.h"
#include "yaml/json.h"

namespace tenon {

namespace {

std::string requested_of(const Placement& p) {
  return p.requested;
}
std::string device_of(const Placement& p) {
  return p.device.empty() ? "none" : p.device;
}
std::string kernel_of(const Placement& p) {
  return p.algorithm;
}
std::string reason_of(const Placement& p) {
  if (!p.once) return p.reason;
  return (p.reason.empty() ? "" : p.reason + "; ") + "runs when parameters change";
}

/// A column of the table of nodes.
struct Column {
  std::string title;
  std::function<std::string(const Placement&)> text;
  bool shortens = false;  ///< for a narrow terminal
};

Table table_of(const std::vector<Placement>& nodes, const std::vector<Column>& columns) {
  std::vector<std::string> header;
  for (const Column& column : columns) header.push_back(column.title);
  Table table(std::move(header));
  for (const Placement& p : nodes) {
    std::vector<std::string> row;
    for (const Column& column : columns) row.push_back(column.text(p));
    table.add(std::move(row));
  }
  return table;
}

bool is_same(const std::vector<Placement>& nodes, std::string (*text)(const Placement&)) {
  return std::ranges::all_of(nodes, [&](const Placement& p) { return text(p) == text(nodes[0]); });
}

/// The table of nodes for lines of at most this width, and lines below it with what it leaves out.
std::string nodes_text(const std::vector<Placement>& nodes, std::size_t max_width) {
  std::vector<Column> columns{{.title = "node", .text = [](const Placement& p) { return p.node; }, .shortens = true},
                              {.title = "op", .text = [](const Placement& p) { return p.op; }},
                              {.title = "dtype", .text = [](const Placement& p) { return std::string(name_of(p.dtype)); }},
                              {.title = "requested", .text = requested_of},
                              {.title = "device", .text = device_of},
                              {.title = "kernel", .text = kernel_of, .shortens = true},
                              {.title = "reason", .text = reason_of}};
  const Table whole = table_of(nodes, columns);
  if (max_width == 0 || whole.width() <= max_width || nodes.empty()) return whole.str();

  std::string notes;
  const auto leave_out = [&](std::string_view title) { std::erase_if(columns, [&](const Column& c) { return c.title == title; }); };
  const bool moved = std::ranges::any_of(nodes, [](const Placement& p) { return p.requested != p.device; });
  if (!moved && is_same(nodes, device_of)) leave_out("device");
  if (is_same(nodes, requested_of)) {
    leave_out("requested");
    if (moved) notes += fmt::format("requested: {}\n", nodes[0].requested);
  } else if (!moved) {
    leave_out("requested");
  }
  if (is_same(nodes, kernel_of) && kernel_of(nodes[0]).empty()) leave_out("kernel");
  if (is_same(nodes, reason_of) && reason_of(nodes[0]).empty()) leave_out("reason");

  std::vector<std::string> reasons;
  if (columns.back().title == "reason" && table_of(nodes, columns).width() > max_width) {
    for (const Placement& p : nodes) {
      const std::string reason = reason_of(p);
      if (reason.empty() || std::find(reasons.begin(), reasons.end(), reason) != reasons.end()) continue;
      reasons.push_back(reason);
      notes += fmt::format("[{}] {}\n", reasons.size(), reason);
    }
    columns.back().text = [&reasons](const Placement& p) {
      const auto found = std::find(reasons.begin(), reasons.end(), reason_of(p));
      return found == reasons.end() ? "" : fmt::format("[{}]", found - reasons.begin() + 1);
    };
  }
  std::vector<std::size_t> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].shortens) names.push_back(i);
  }
  return table_of(nodes, columns).str(max_width, names) + wrapped(notes, max_width, 4);
}

/// "copy VALUE: ...", where a name that does not fit into the width is shortened.
std::string copy_line(std::string_view value, const std::string& rest, std::size_t max_width) {
  constexpr std::size_t others = sizeof("copy :") - 1;
  return fmt::format("copy {}: {}\n", max_width == 0 ? std::string(value) : shortened(value, max_width - std::min(others, max_width)),
                     rest);
}

/// What follows the table of nodes.
std::string totals_text(const PlacementReport& report, std::size_t max_width) {
  std::string text;
  for (const PlannedCopy& copy : report.copies)
    text += copy_line(copy.value, fmt::format("{} -> {}, {}", copy.from, copy.to, counted(copy.size_bytes, "byte")), max_width);
  for (const DenseCopy& copy : report.dense_copies) {
    text +=
        copy_line(copy.value, fmt::format("dense on {}, {}: {}", copy.device, counted(copy.size_bytes, "byte"), copy.reason), max_width);
  }
  const auto failing = std::ranges::count_if(report.nodes, [](const Placement& p) { return p.device.empty(); });
  if (failing > 0) {
    return text + fmt::format(
                      "{} of {} {} no device, for the reasons given: a run fails. Choose another --device, place {} "
                      "with `placement`, or set fallback: warn or allow\n",
                      failing, counted(report.nodes.size(), "node"), failing == 1 ? "has" : "have", failing == 1 ? "it" : "them");
  }
  text += fmt::format(
      "{}, {} moved; {}, {}; {} between devices, {} a run\n"
      "workspace {}, packed {}{}\n",
      counted(report.nodes.size(), "node"), report.moved(), counted(report.partitions, "partition"), counted(report.kernels, "kernel"),
      counted(report.copies_inserted, "copy", "copies"), counted(report.bytes_copied_per_run, "byte"),
      counted(report.workspace_size_bytes, "byte"), counted(report.packed_size_bytes, "byte"),
      report.shared_packed_size_bytes == 0
          ? ""
          : fmt::format(", of these {} shared with programs of the same parameters", report.shared_packed_size_bytes));
  if (report.collectives > 0)
    text += fmt::format("{} over ranks{}, {} a run\n", counted(report.collectives, "sum"),
                        report.reduced_by.empty() ? "" : " by " + report.reduced_by, counted(report.bytes_reduced_per_run, "byte"));
  if (report.broadcasts > 0)
    text +=
        fmt::format("{} among ranks, {} a run\n", counted(report.broadcasts, "broadcast"), counted(report.bytes_broadcast_per_run, "byte"));
  std::string dtypes;
  for (const auto& [dtype, count] : report.nodes_by_dtype())
    dtypes += fmt::format("{}{} in {}", dtypes.empty() ? "" : ", ", count, name_of(dtype));
  if (!dtypes.empty()) text += fmt::format("computed: {}\n", dtypes);
  if (!report.replay.empty()) text += fmt::format("replay: {}; {} recorded, {} replayed\n", report.replay, report.records, report.replays);
  return text;
}

}  // namespace

std::string placement_text(const PlacementReport& report, std::size_t max_width) {
  return nodes_text(report.nodes, max_width) + wrapped(totals_text(report, max_width), max_width);
}

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
  return placement_text(*this);
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
