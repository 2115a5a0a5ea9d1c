// What ran where, for people and for programs.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include <tenon/program.h>

namespace tenon {

std::size_t PlacementReport::moved() const {
  return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [](const Placement& p) { return !p.reason.empty(); }));
}

std::string PlacementReport::str() const {
  std::size_t node_width = 4, op_width = 2, requested_width = 9, device_width = 6;
  for (const Placement& p : nodes) {
    node_width = std::max(node_width, p.node.size());
    op_width = std::max(op_width, p.op.size());
    requested_width = std::max(requested_width, p.requested.size());
    device_width = std::max(device_width, p.device.size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  reason\n", "node", node_width, "op", op_width, "requested",
                                 requested_width, "device", device_width);
  for (const Placement& p : nodes) {
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {}\n", p.node, node_width, p.op, op_width, p.requested, requested_width, p.device,
                        device_width, p.reason);
  }
  for (const PlannedCopy& copy : copies)
    text += fmt::format("copy {}: {} -> {}, {} bytes\n", copy.value, copy.from, copy.to, copy.size_bytes);
  text += fmt::format(
      "{} nodes, {} moved; {} partitions, {} kernels; {} copies between devices, {} bytes a run; workspace {} bytes, packed {} bytes\n",
      nodes.size(), moved(), partitions, kernels, copies_inserted, bytes_copied_per_run, workspace_size_bytes, packed_size_bytes);
  return text;
}

std::string PlacementReport::mapping() const {
  std::set<std::string> telling;  // devices whose backend names its kernels
  for (const Placement& p : nodes) {
    if (!p.algorithm.empty()) telling.insert(p.device);
  }
  std::string text;
  for (const Placement& p : nodes) {
    const char* none = telling.contains(p.device) ? "no kernel of its own" : "kernel not told";
    text += fmt::format("op {} '{}' in device {} ({})\n", p.op, p.node, p.device, p.algorithm.empty() ? none : p.algorithm);
  }
  return text;
}

std::string PlacementReport::json() const {
  using Json = nlohmann::ordered_json;
  Json node_list = Json::array(), copy_list = Json::array();
  for (const Placement& p : nodes) {
    node_list.push_back({{"node", p.node},
                         {"op", p.op},
                         {"requested", p.requested},
                         {"device", p.device},
                         {"algorithm", p.algorithm},
                         {"reason", p.reason},
                         {"output_size_bytes", p.output_size_bytes}});
  }
  for (const PlannedCopy& copy : copies)
    copy_list.push_back({{"value", copy.value}, {"from", copy.from}, {"to", copy.to}, {"size_bytes", copy.size_bytes}});
  return Json{{"nodes", node_list},
              {"copies", copy_list},
              {"moved", moved()},
              {"partitions", partitions},
              {"kernels", kernels},
              {"copies_inserted", copies_inserted},
              {"bytes_copied_per_run", bytes_copied_per_run},
              {"workspace_size_bytes", workspace_size_bytes},
              {"packed_size_bytes", packed_size_bytes}}
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace tenon
