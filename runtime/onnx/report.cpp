// SPDX-License-Identifier: Apache-2.0
#include "onnx/report.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <tenon/error.h>

#include "core/log.h"
#include "graph/vendor_ops.h"
#include "onnx/importer.h"
#include "onnx/rules.h"
#include "text/counted.h"

namespace tenon::onnx {
namespace {

const char* name_of(ValueRecord::Kind kind) {
  switch (kind) {
    case ValueRecord::Kind::sequence:
      return "seq";
    case ValueRecord::Kind::optional:
      return "optional";
    case ValueRecord::Kind::sparse_tensor:
      return "sparse_tensor";
    case ValueRecord::Kind::map:
      return "map";
    case ValueRecord::Kind::tensor:
      return "tensor";
    case ValueRecord::Kind::none:
      break;
  }
  return "unknown";
}

/// Counts the operators of a model: those of its graph, and of the functions that it calls, each function once.
class Counter {
 public:
  explicit Counter(const ModelRecord& model) {
    for (const FunctionRecord& function : model.functions) functions_[FunctionKey::of(function)] = &function;
    count(model.graph, model.opsets);
    while (!called_.empty()) {
      const FunctionRecord& function = *called_.back();
      called_.pop_back();
      for (const NodeRecord& node : function.nodes) count(node, function.opsets.empty() ? model.opsets : function.opsets);
    }
  }
  std::vector<OperatorCount> result() const {
    std::vector<OperatorCount> list;
    for (const auto& [key, count] : counts_) list.push_back(count);
    return list;
  }

 private:
  using Key = std::tuple<std::string_view, std::string_view, std::int64_t>;
  std::map<FunctionKey, const FunctionRecord*> functions_;
  std::set<const FunctionRecord*> seen_;
  std::vector<const FunctionRecord*> called_;  ///< whose nodes are not counted yet
  std::map<Key, OperatorCount> counts_;

  void count(const GraphRecord& graph, const std::vector<OpsetRecord>& opsets) {
    for (const NodeRecord& node : graph.nodes) count(node, opsets);
  }
  void count(const NodeRecord& node, const std::vector<OpsetRecord>& opsets) {
    for (const AttributeRecord& attribute : node.attributes) {
      for (const GraphRecord& graph : attribute.graphs) count(graph, opsets);
    }
    const auto opset = std::ranges::find(opsets, node.domain, &OpsetRecord::domain);
    const std::int64_t version = opset == opsets.end() ? 1 : std::max<std::int64_t>(opset->version, 1);
    const Rule* const rule = find_rule(node.domain, node.op, version);
    const auto function = functions_.find(FunctionKey::of(node));
    const bool is_call = rule == nullptr && function != functions_.end();
    if (is_call && seen_.insert(function->second).second) called_.push_back(function->second);
    auto [found, is_new] = counts_.try_emplace({node.domain, node.op, version});
    OperatorCount& entry = found->second;
    ++entry.count;
    if (!is_new) return;
    entry.domain = node.domain.empty() ? "ai.onnx" : std::string(node.domain);
    entry.op = node.op;
    entry.opset = version;
    entry.node = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
    if (rule != nullptr || is_call) return;
    if (!node.domain.empty() && graph::find_vendor_op(node.domain, node.op) != nullptr) return;
    const char* refusal = refusal_of(node.domain, node.op);
    const Rule* other = find_rule(node.domain, node.op, std::numeric_limits<std::int64_t>::max());
    entry.reason =
        refusal != nullptr ? refusal
        : other != nullptr ? fmt::format("it exists since opset {}, the model imports opset {}", other->since, version)
        : node.domain.empty()
            ? "Tenon has no such operator"
            : fmt::format("Tenon has no operators of the domain {} of this name, and no loaded backend declares one", node.domain);
  }
};

}  // namespace

ValueType type_of(const ValueRecord& record) {
  ValueType type;
  type.name = record.name;
  if (record.kind == ValueRecord::Kind::tensor) type.dtype = dtype_of(record.type);
  type.ranked = record.ranked;
  for (const DimensionRecord& dimension : record.shape) {
    type.shape.push_back({.size = std::max<std::int64_t>(dimension.size, -1), .symbol = std::string(dimension.symbol)});
  }
  const std::string element = onnx::name_of(record.type);
  type.type = record.kind == ValueRecord::Kind::sequence || record.kind == ValueRecord::Kind::optional
                  ? fmt::format("{}({}({}))", name_of(record.kind), name_of(record.element_kind), element)
                  : fmt::format("{}({})", name_of(record.kind), element);
  return type;
}

std::string Dimension::str() const {
  return is_fixed() ? std::to_string(size) : symbol.empty() ? "?" : symbol;
}

std::string ValueType::str() const {
  std::vector<std::string> dims;
  for (const Dimension& dimension : shape) dims.push_back(dimension.str());
  const std::string element = dtype == DType::none ? type + " " : tenon::name_of(dtype);
  return fmt::format("{} {}({})", name, element, ranked ? fmt::format("{}", fmt::join(dims, ",")) : "...");
}

std::size_t FileReport::unsupported() const {
  return static_cast<std::size_t>(std::ranges::count_if(operators, [](const OperatorCount& op) { return !op.reason.empty(); }));
}

FileReport report_of(const ModelFile& file) {
  const ModelRecord& model = file.model();
  FileReport report;
  Metadata& data = report.metadata;
  data.graph = model.graph.name;
  data.producer = model.producer;
  data.producer_version = model.producer_version;
  data.domain = model.domain;
  data.description = model.doc;
  data.model_version = model.model_version;
  data.ir_version = model.ir_version;
  for (const OpsetRecord& opset : model.opsets) data.opsets[opset.domain.empty() ? "ai.onnx" : std::string(opset.domain)] = opset.version;
  for (const TextEntry& entry : model.metadata) data.properties[std::string(entry.key)] = entry.value;
  std::set<std::string_view> initialized;
  for (const TensorRecord& tensor : model.graph.initializers) {
    initialized.insert(tensor.name);
    const DType dtype = dtype_of(tensor.type);
    std::uint64_t count = 1;
    for (const std::int64_t size : tensor.dims) count *= static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
    if (is_floating(dtype)) report.weights += count;
    report.weights_size_bytes += count * static_cast<std::uint64_t>(size_of(dtype));
  }
  for (const SparseTensorRecord& tensor : model.graph.sparse_initializers) initialized.insert(tensor.values.name);
  for (const ValueRecord& input : model.graph.inputs) {
    if (!initialized.contains(input.name)) report.inputs.push_back(type_of(input));
  }
  for (const ValueRecord& output : model.graph.outputs) report.outputs.push_back(type_of(output));
  report.operators = Counter(model).result();
  return report;
}

void require_supported(const std::string& file, const FileReport& report) {
  std::vector<std::string> problems;
  for (const OperatorCount& op : report.operators) {
    if (op.reason.empty()) continue;
    problems.push_back(
        fmt::format("  {}.{}-{}, {}, first '{}': {}", op.domain, op.op, op.opset, counted(op.count, "node"), op.node, op.reason));
  }
  for (const ValueType& input : report.inputs) {
    if (input.dtype == DType::none)
      problems.push_back(fmt::format("  input '{}': {} is not a type that Tenon computes with", input.name, input.type));
  }
  if (!problems.empty()) {
    throw Error(Status::unsupported, fmt::format("{}: cannot be imported:\n{}", file, fmt::join(problems, "\n")));
  }
}

std::string remark_on_opset(const Metadata& metadata) {
  const auto found = metadata.opsets.find("ai.onnx");
  if (found == metadata.opsets.end() || found->second <= newest_opset) return {};
  return fmt::format("newer than {}; its operators are read as those of opset {}", newest_opset, newest_opset);
}

void warn_of_opset(const std::string& file, const Metadata& metadata) {
  if (const std::string remark = remark_on_opset(metadata); !remark.empty())
    log::warning("{}: imports opset {} of ai.onnx, {}", file, metadata.opsets.at("ai.onnx"), remark);
}

FileReport inspect(const std::filesystem::path& path) {
  return report_of(*ModelFile::open(path));
}

NamedTensor load_tensor(const std::filesystem::path& path) {
  return load_tensor_file(path);
}

}  // namespace tenon::onnx
