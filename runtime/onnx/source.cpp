// SPDX-License-Identifier: Apache-2.0
#include "onnx/source.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "exec/cost.h"
#include "graph/passes.h"
#include "graph/patterns/recognize.h"
#include "onnx/graph_names.h"
#include "onnx/report.h"

namespace tenon::onnx {
namespace {

/// Copies a graph of a file into another graph.
class Copy {
 public:
  Copy(const std::string& file, const Graph& from, Graph& to, const SourcePass& pass)
      : file_(file), from_(from), to_(to), pass_(pass), values_(from.values().size()), is_read_(from.values().size()) {
    for (const NodeInfo& node : from.nodes()) {
      for (const ValueId input : node.inputs) {
        if (input != no_id) is_read_[input] = true;
      }
    }
    for (const GraphOutput& output : from.outputs()) is_read_[output.value] = true;
    for (const GraphUpdate& update : from.updates()) is_read_[update.parameter] = true;
  }

  /// Returns the copies of the outputs.
  std::vector<Value> run(const std::map<std::string, Value>& inputs, const Weights& weights, const std::set<std::string>& states) {
    std::map<std::string, ValueId> parameters;
    for (ValueId v = 0; v < values_.size(); ++v) {
      const ValueInfo& info = from_.info(v);
      if (info.kind == ValueKind::input) values_[v] = input(info, inputs);
      if (info.kind == ValueKind::constant) values_[v] = to_.constant(converted(info.constant));
      if (info.kind == ValueKind::parameter && is_read_[v]) parameters[info.name] = v;
    }
    bool learns = false;
    for (const std::string& name : weights.names()) {
      const auto found = parameters.find(name);
      if (found == parameters.end()) continue;
      const bool is_state = states.contains(name);
      learns = learns || (!is_state && pass_.learns(name));
      values_[found->second] = pass_.weight({name, weight(name, weights.all().at(name)), is_state});
    }
    for (const NodeInfo& node : from_.nodes()) copy(node, learns);
    for (const GraphUpdate& update : from_.updates()) pass_.keep(from_.info(update.parameter).name, values_[update.value]);
    std::vector<Value> outputs;
    for (const GraphOutput& output : from_.outputs()) outputs.push_back(values_[output.value]);
    return outputs;
  }

 private:
  const std::string& file_;
  const Graph& from_;
  Graph& to_;
  const SourcePass& pass_;
  std::vector<Value> values_;  ///< by the value that each is a copy of
  std::vector<bool> is_read_;
  /// Nodes that draw random numbers have streams of their own in each part of a graph.
  const std::uint32_t stream_ = static_cast<std::uint32_t>(to_.nodes().size());

  DType dtype_of(DType dtype) const { return is_floating(dtype) && size_of(dtype) < size_of(pass_.dtype) ? pass_.dtype : dtype; }
  tenon_dtype converted(tenon_dtype dtype) const { return static_cast<tenon_dtype>(dtype_of(static_cast<DType>(dtype))); }
  Tensor converted(const Tensor& tensor) const {
    const DType dtype = dtype_of(tensor.dtype());
    return dtype == tensor.dtype() ? tensor : tensor.to(dtype);
  }
  Tensor weight(const std::string& name, const Tensor& elements) const {
    if (size_of(elements.dtype()) <= size_of(pass_.dtype)) return converted(elements);
    throw Error(fmt::format("{}: weight '{}' is {}, more than the {} of the model; set `dtype: float64`", file_, name,
                            name_of(elements.dtype()), name_of(pass_.dtype)));
  }
  Value input(const ValueInfo& info, const std::map<std::string, Value>& inputs) const {
    if (info.name == key_input) return pass_.key;
    const Value given = inputs.at(info.name);
    const DType dtype = dtype_of(info.dtype);
    return given.dtype() == dtype ? given : ops::cast(given, dtype);
  }

  Attributes attributes_of(const NodeInfo& node) const {
    switch (node.op) {
      case TENON_OP_Cast: {
        auto cast = node.attributes.as<tenon_attributes_cast>();
        cast.to = converted(cast.to);
        return Attributes::of(cast);
      }
      case TENON_OP_OneHot: {
        auto one_hot = node.attributes.as<tenon_attributes_one_hot>();
        one_hot.dtype = converted(one_hot.dtype);
        return Attributes::of(one_hot);
      }
      case TENON_OP_RandomUniform:
      case TENON_OP_RandomNormal: {
        auto random = node.attributes.as<tenon_attributes_random>();
        random.dtype = converted(random.dtype);
        return Attributes::of(random);
      }
      case TENON_OP_Dropout: {
        auto random = node.attributes.as<tenon_attributes_random>();
        random.stream += stream_;
        return Attributes::of(random);
      }
      default:
        return node.attributes;
    }
  }

  void copy(const NodeInfo& node, bool learns) {
    std::vector<Value> operands;
    for (const ValueId input : node.inputs) operands.push_back(input == no_id ? Value() : values_[input]);
    std::vector<Value> results;
    if (node.op == TENON_OP_Dropout && !learns) {
      results = {operands[0]};
    } else {
      NodeInfo own = node;
      own.attributes = attributes_of(node);
      results = graph::apply_again(from_, own, operands, to_);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_id) values_[node.outputs[i]] = results[i];
    }
  }
};

}  // namespace

Source::Source(std::shared_ptr<ModelFile> file) : file_(std::move(file)), report_(report_of(*file_)), weights_(file_) {
  warn_of_opset(file_->name(), report_.metadata);
}

std::shared_ptr<Source> Source::open(const std::filesystem::path& path) {
  return std::shared_ptr<Source>(new Source(ModelFile::open(path)));
}

std::vector<std::string> Source::values() const {
  std::vector<std::string> names;
  for (const NodeRecord& node : file_->model().graph.nodes) {
    for (const std::string_view name : node.outputs) {
      if (!name.empty()) names.emplace_back(name);
    }
  }
  return names;
}

std::string Source::operator_of(const std::string& value) const {
  for (const NodeRecord& node : file_->model().graph.nodes) {
    if (std::ranges::find(node.outputs, value) != node.outputs.end()) return std::string(node.op);
  }
  return {};
}

std::vector<ValueType> Source::inputs_of(std::span<const std::string> values) const {
  const std::set<std::string_view> names = names_behind(file_->model().graph, values);
  std::vector<ValueType> inputs = report_.inputs;
  std::erase_if(inputs, [&](const ValueType& input) { return !names.contains(input.name); });
  return inputs;
}

Source::Added Source::add_to(Graph& graph, const std::map<std::string, Value>& inputs, const std::vector<std::string>& outputs,
                             const SourcePass& pass) {
  InputTypes types;
  for (const ValueType& input : inputs_of(outputs)) types[input.name] = {input.dtype, inputs.at(input.name).shape()};
  const LearningMode mode{.training = pass.key.present(), .learns = pass.learns};
  const ImportOptions options{.outputs = outputs, .mode = &mode};
  const Evaluate evaluate = evaluate_on_host(pass.context, pass.context.default_device());
  Graph part;
  Importer importer(*file_, weights_, evaluate, types, options, part);
  try {
    importer.run();
  } catch (const ElementsNeeded& needed) {
    throw Error(Status::unsupported,
                fmt::format("{}: the elements of '{}' determine shapes, axes, counts or branches: expected a graph whose "
                            "shapes follow from the shapes of its inputs",
                            name(), fmt::join(needed.inputs, "', '")));
  }
  part = graph::recognize_patterns(std::move(part));
  std::vector<NodeId> nodes(part.nodes().size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  return {Copy(name(), part, graph, pass).run(inputs, weights_, importer.states()), exec::cost_of(part, nodes).flops};
}

}  // namespace tenon::onnx
