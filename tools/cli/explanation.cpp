// SPDX-License-Identifier: Apache-2.0
#include "cli/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "cli/backend_report.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "core/table.h"
#include "exec/placement_text.h"
#include "graph/patterns/recognize.h"
#include "platform/streams.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The devices that nodes run on, in the order of the context.
std::vector<DeviceInfo> devices_of(const Explanation& explanation) {
  std::set<std::string> names;
  for (const Placement& placement : explanation.placement.nodes) names.insert(placement.device);
  std::vector<DeviceInfo> devices = explanation.devices;
  std::erase_if(devices, [&](const DeviceInfo& device) { return !names.contains(device.name); });
  return devices;
}

/// A part of the memory of a program: its name in texts, its field in JSON.
struct MemoryPart {
  const char *name, *field;
  std::uint64_t (*size_bytes)(const MemoryPlan& plan);
};
constexpr MemoryPart memory_parts[] = {
    {"parameters", "parameters_size_bytes", [](const MemoryPlan& plan) { return plan.parameters_size_bytes(); }},
    {"packed parameters", "packed_parameters_size_bytes", [](const MemoryPlan& plan) { return plan.packed_parameters_size_bytes(); }},
    {"constants and other packed weights", "packed_size_bytes", [](const MemoryPlan& plan) { return plan.packed_size_bytes; }},
    {"activations and workspace", "workspace_size_bytes", [](const MemoryPlan& plan) { return plan.workspace_size_bytes; }},
    {"inputs", "inputs_size_bytes", [](const MemoryPlan& plan) { return plan.inputs_size_bytes; }},
    {"results", "outputs_size_bytes", [](const MemoryPlan& plan) { return plan.outputs_size_bytes; }},
    {"in all", "peak_size_bytes", [](const MemoryPlan& plan) { return plan.peak_size_bytes(); }},
};

std::string memory_text(const std::vector<MemoryPlan>& plans) {
  std::string text;
  for (const MemoryPlan& plan : plans) {
    text += fmt::format("memory on {}, in bytes:\n", plan.device);
    for (const MemoryPart& part : memory_parts) text += fmt::format("  {:<34}{:>14}\n", part.name, part.size_bytes(plan));
  }
  return text;
}

Json memory_json(const std::vector<MemoryPlan>& plans) {
  Json list = Json::array();
  for (const MemoryPlan& plan : plans) {
    list.push_back({{"device", plan.device}});
    for (const MemoryPart& part : memory_parts) list.back()[part.field] = part.size_bytes(plan);
  }
  return list;
}

/// The nodes of quantised models by op: those that compute with integers, and the conversions that no such node has taken in.
struct QuantisedNodes {
  std::map<std::string, int> integer, conversions;
};
QuantisedNodes quantised_nodes(const PlacementReport& placement) {
  static const std::set<std::string> integer{"QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger", "MatMulNBits"};
  static const std::set<std::string> conversions{"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"};
  QuantisedNodes nodes;
  for (const Placement& node : placement.nodes) {
    if (integer.contains(node.op)) ++nodes.integer[node.op];
    if (conversions.contains(node.op)) ++nodes.conversions[node.op];
  }
  return nodes;
}
/// "quantised: 53 QLinearConv; run as written: 1 DequantizeLinear, 2 QuantizeLinear"; empty for other models.
std::string str(const QuantisedNodes& nodes) {
  const auto list = [](const std::map<std::string, int>& counts) {
    std::vector<std::string> parts;
    for (const auto& [op, count] : counts) parts.push_back(fmt::format("{} {}", count, op));
    return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
  };
  if (nodes.integer.empty() && nodes.conversions.empty()) return {};
  return fmt::format("quantised: {}; run as written: {}\n", list(nodes.integer), list(nodes.conversions));
}

/// The line of a device; where it is wider than the terminal, its description has lines of its own.
std::string device_text(const DeviceInfo& device, std::size_t columns_of_terminal) {
  const std::string line = fmt::format("{}: {}, {}\n", device.name, device.product, device.description);
  if (wrapped(line, columns_of_terminal) == line) return line;
  return wrapped(fmt::format("{}: {},\n  {}\n", device.name, device.product, device.description), columns_of_terminal);
}

std::string as_text(const Explanation& explanation, std::size_t columns_of_terminal) {
  std::string text = wrapped(explanation.title + "\n", columns_of_terminal);
  for (const DeviceInfo& device : devices_of(explanation)) text += device_text(device, columns_of_terminal);
  text += "\n" + placement_text(explanation.placement, columns_of_terminal);
  if (explanation.runs()) text += memory_text(explanation.program().memory());
  return text + wrapped(explanation.notes, columns_of_terminal);
}

Json to_json(const Explanation& explanation) {
  Json json = explanation.facts;
  json["devices"] = Json::array();
  for (const DeviceInfo& device : devices_of(explanation))
    json["devices"].push_back({{"name", device.name}, {"product", device.product}, {"description", device.description}});
  json.update(Json::parse(explanation.placement.json()));
  if (!explanation.runs()) return json;
  const Program& program = explanation.program();
  json["memory"] = memory_json(program.memory());
  json["graph"] = Json::parse(tenon::to_json(program.graph(), explanation.placement.device_by_node()));
  return json;
}

}  // namespace

bool Explanation::runs() const {
  return std::ranges::none_of(placement.nodes, [](const Placement& node) { return node.device.empty(); });
}

void show(const Explanation& explanation, const std::string& format) {
  if (!explanation.runs()) set_exit_code(1);  // there is no program to draw or to time
  if (format == "dot" && explanation.runs()) return print(to_dot(explanation.program().graph(), explanation.placement.device_by_node()));
  std::optional<Roofline> roofline;
  if (explanation.runs() && explanation.roofline) roofline = explanation.roofline();
  if (format == "json") {
    Json json = to_json(explanation);
    if (roofline) json["roofline"] = to_json(*roofline);
    return print(dump(json));
  }
  const auto columns = static_cast<std::size_t>(platform::terminal_columns(stdout));
  print(as_text(explanation, columns));
  if (roofline) print("\n" + as_text(*roofline, columns));
}

Explanation explain(onnx::Model& model, const Context& context, const std::string& file, const OnnxInputs& inputs,
                    const std::optional<RooflineOptions>& roofline) {
  const onnx::NamedTensors tensors = inputs.tensors(model);
  onnx::InputTypes types;
  Json listed = Json::array();
  for (const onnx::ValueType& input : model.inputs()) {
    const Tensor& tensor = tensors.at(input.name);
    types[input.name] = {tensor.dtype(), tensor.shape(), tensor};
    listed.push_back(
        {{"name", input.name}, {"dtype", name_of(tensor.dtype())}, {"shape", tensor.shape().dims()}, {"from", inputs.source(input.name)}});
  }
  PlacementReport placement = model.explain(types);
  const graph::PatternCounts patterns{model.recognized_patterns()};
  const QuantisedNodes quantised = quantised_nodes(placement);
  std::string notes = str(patterns) + "\n" + str(quantised);
  const std::vector<std::string>& specialised = model.specialised_inputs();
  if (!specialised.empty()) notes += fmt::format("a program is made for each value of: {}\n", fmt::join(specialised, ", "));
  const DType dtype = placement.nodes.empty() ? DType::f32 : placement.nodes_by_dtype().front().first;
  const auto measure = [&model, &context, tensors, dtype, roofline] {
    return measure_roofline(
        context, dtype, "op", [](const Trace::Kernel& kernel) { return kernel.nodes == 0 ? name_of(kernel) : kernel.op; },
        [&] { model.run(tensors); }, *roofline);
  };
  return {.title = fmt::format("{} for {}{}", file, inputs.str(model, tensors), in_precision(context)),
          .facts = {{"model", file},
                    {"inputs", listed},
                    {"precision", name_of(context.config().precision)},
                    {"recognized_patterns", patterns.by_name},
                    {"quantised_nodes", {{"integer", quantised.integer}, {"as_written", quantised.conversions}}},
                    {"specialised_inputs", specialised}},
          .notes = notes,
          .devices = context.devices(),
          .placement = std::move(placement),
          .program = [&model, types]() -> const Program& { return model.bind(types); },
          .roofline = roofline ? std::function<Roofline()>(measure) : nullptr};
}

}  // namespace tenon::cli
