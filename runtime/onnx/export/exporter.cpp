// SPDX-License-Identifier: Apache-2.0
#include "onnx/export/exporter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/error.h>

#include "graph/vendor_ops.h"
#include "onnx/export/rules.h"
#include "onnx/model_file.h"
#include "text/counted.h"

namespace tenon::onnx::exporting {
namespace {

/// The oldest IR version that a model of the opset may have.
std::int64_t ir_version_of(std::int64_t opset) {
  if (opset >= 23) return 11;
  if (opset >= 21) return 10;
  return opset >= 19 ? 9 : 8;
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.size_bytes())) == 0;
}

/// Whether all elements are `value`, to the bit.
bool is_filled(const Tensor& tensor, const Tensor& value) {
  const auto size = static_cast<std::size_t>(value.size_bytes());
  const auto* bytes = static_cast<const char*>(tensor.raw());
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (std::memcmp(bytes + static_cast<std::size_t>(i) * size, value.raw(), size) != 0) return false;
  }
  return true;
}

/// The given names, or else the graph's.
std::vector<std::string> names_or(const char* what, const std::vector<std::string>& given, const std::vector<std::string>& own) {
  if (given.empty()) return own;
  if (given.size() == own.size()) return given;
  throw Error(fmt::format("ONNX export: expected {} for the {} ({}), got {}: {}", counted(own.size(), "name"), what, fmt::join(own, ", "),
                          given.size(), fmt::join(given, ", ")));
}

}  // namespace

Exporter::Exporter(const GraphAtBatch& graph, const std::optional<GraphAtBatch>& other, const ParameterValues& values,
                   const ExportOptions& options)
    : graph_(graph), other_(other), values_(values), options_(options), writer_(options.opset) {}

ModelRecord Exporter::run() {
  if (other_) compare_graphs();
  find_read_values();
  terms_.resize(graph().values().size());
  claim_names();
  add_inputs();
  for (const NodeInfo& node : graph().nodes()) export_node(node);
  if (problems_.empty()) add_outputs();
  if (!problems_.empty()) {
    const std::size_t others = problems_.size() > 20 ? problems_.size() - 20 : 0;
    if (others > 0) problems_.resize(20);
    throw Error(Status::unsupported,
                fmt::format("ONNX export: {}{}", fmt::join(problems_, "\n"), others > 0 ? fmt::format("\nand {} more", others) : ""));
  }
  ModelRecord model;
  model.ir_version = ir_version_of(options_.opset);
  model.producer = "tenon";
  model.producer_version = TENON_VERSION;
  model.opsets.push_back({.domain = "", .version = options_.opset});
  for (const auto& [domain, version] : writer_.domains()) model.opsets.push_back({.domain = domain, .version = version});
  for (const auto& [key, value] : options_.metadata) model.metadata.push_back({.key = key, .value = value});
  model.graph = writer_.finish();
  model.graph.name = options_.graph_name.empty() ? "tenon" : std::string_view(options_.graph_name);
  model.graph.inputs = std::move(inputs_);
  model.graph.outputs = std::move(outputs_);
  return model;
}

// ---------------------------------------------------------------- the graph at two batch sizes

void Exporter::compare_graphs() const {
  const Graph &a = graph(), &b = other_->graph;
  const auto fail = [&](const std::string& where) {
    throw Error(Status::unsupported, fmt::format("ONNX export: the graphs for batches of {} and {} differ {}; {}", graph_.batch,
                                                 other_->batch, where, fixed_batch_remedy));
  };
  for (std::size_t i = 0; i < std::min(a.nodes().size(), b.nodes().size()); ++i) {
    const NodeInfo &x = a.nodes()[i], &y = b.nodes()[i];
    if (x.op != y.op || x.inputs != y.inputs || x.outputs != y.outputs) fail(fmt::format("from node '{}' ({}) on", x.name, op_name(x.op)));
  }
  if (a.nodes().size() != b.nodes().size())
    fail(fmt::format("in the number of their nodes, {} and {}", a.nodes().size(), b.nodes().size()));
  if (a.values().size() != b.values().size()) fail("in the number of their values");
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const ValueInfo &x = a.values()[i], &y = b.values()[i];
    if (x.kind != y.kind || x.dtype != y.dtype || x.shape.rank() != y.shape.rank())
      fail(fmt::format("in value '{}', {}{} and {}{}", x.name, name_of(x.dtype), x.shape.str(), name_of(y.dtype), y.shape.str()));
  }
}

Sizes Exporter::sizes(ValueId id) const {
  const ValueInfo& value = graph().info(id);
  Sizes sizes;
  for (std::size_t i = 0; i < value.shape.rank(); ++i) {
    const std::int64_t a = value.shape[i], b = other_ ? other_->graph.info(id).shape[i] : a;
    if (a == b) {
      sizes.push_back({a});
    } else if (a % graph_.batch == 0 && b == a / graph_.batch * other_->batch) {
      sizes.push_back({a / graph_.batch, true});
    } else {
      throw Error(Status::unsupported,
                  fmt::format("dimension {} of '{}' is {} for a batch of {} and {} for one of {}, which is no multiple; {}", i, value.name,
                              a, graph_.batch, b, other_->batch, fixed_batch_remedy));
    }
  }
  return sizes;
}

Term Exporter::batch() {
  if (batch_.present()) return batch_;
  for (ValueId id = 0; id < graph().values().size(); ++id) {
    if (graph().info(id).kind != ValueKind::input) continue;
    const Sizes sizes = this->sizes(id);
    const auto found = std::ranges::find_if(sizes, &Size::times_batch);
    if (found == sizes.end()) continue;
    const std::int64_t axis = found - sizes.begin();
    const std::string scope = "batch_size";
    batch_ = writer_.add(scope, {"Shape"}, {terms_[id]}, {integer("start", axis), integer("end", axis + 1)}, {DType::i64})[0];
    if (found->count != 1) batch_ = writer_.add(scope, {"Div"}, {batch_, writer_.integers({found->count})}, {}, {DType::i64})[0];
    return batch_;
  }
  throw Error(Status::unsupported, fmt::format("a shape depends on the batch size, but no input's does; {}", fixed_batch_remedy));
}

// ---------------------------------------------------------------- values

void Exporter::find_read_values() {
  read_.assign(graph().values().size(), false);
  for (const GraphOutput& output : graph().outputs()) read_[output.value] = true;
  for (auto node = graph().nodes().rbegin(); node != graph().nodes().rend(); ++node) {
    if (std::ranges::none_of(node->outputs, [&](ValueId v) { return v != no_id && read_[v]; })) continue;
    for (const ValueId input : node->inputs) {
      if (input != no_id) read_[input] = true;
    }
  }
}

void Exporter::claim_names() {
  const auto claim = [&](const std::string& name, const char* what) {
    if (name.empty()) throw Error(fmt::format("ONNX export: expected a name for each {}, got an empty one", what));
    if (!writer_.claim(name))
      throw Error(
          fmt::format("ONNX export: {} '{}': another input, output or parameter has this name, which ONNX does not allow; choose "
                      "other names of inputs and outputs (ExportOptions::inputs, outputs)",
                      what, name));
    return writer_.keep(name);
  };
  std::vector<std::string> inputs, outputs;
  for (const ValueInfo& value : graph().values()) {
    if (value.kind == ValueKind::input) inputs.push_back(value.name);
    if (value.kind == ValueKind::parameter) claim(value.name, "parameter");
  }
  for (const GraphOutput& output : graph().outputs()) outputs.push_back(output.name);
  for (const std::string& name : names_or("inputs", options_.inputs, inputs)) input_names_.push_back(claim(name, "input"));
  for (const std::string& name : names_or("outputs", options_.outputs, outputs)) output_names_.push_back(claim(name, "output"));
}

ValueRecord Exporter::record(std::string_view name, ValueId id) {
  ValueRecord record;
  record.name = name;
  record.kind = ValueRecord::Kind::tensor;
  record.type = element_type_of(graph().info(id).dtype);
  record.ranked = true;
  for (const Size& size : sizes(id)) {
    DimensionRecord& dimension = record.shape.emplace_back();
    if (!size.times_batch) dimension.size = size.count;
    if (size.times_batch) dimension.symbol = size.count == 1 ? "batch" : writer_.keep(fmt::format("{}*batch", size.count));
  }
  return record;
}

void Exporter::add_inputs() {
  for (ValueId id = 0; id < graph().values().size(); ++id) {
    const ValueInfo& value = graph().info(id);
    if (value.kind != ValueKind::input) continue;
    const std::string_view name = input_names_[inputs_.size()];
    terms_[id] = {name, value.dtype};
    inputs_.push_back(record(name, id));
  }
}

void Exporter::add_outputs() {
  for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
    const ValueId id = graph().outputs()[i].value;
    Term result = term(id);
    if (writer_.name_of(result) != output_names_[i]) {
      // The value of an input or a parameter, or of another output.
      result = writer_.add(std::string(output_names_[i]), {"Identity"}, {result}, {}, {result.dtype})[0];
      writer_.rename(result, output_names_[i]);
    }
    outputs_.push_back(record(output_names_[i], id));
  }
}

Term Exporter::term(ValueId id) {
  Term& term = terms_[id];
  if (term.present()) return term;
  switch (graph().info(id).kind) {
    case ValueKind::parameter:
      term = parameter(id);
      break;
    case ValueKind::constant:
      term = constant(id);
      break;
    default:
      throw Failed();
  }
  return term;
}

void Exporter::set(ValueId id, const Term& term) {
  terms_[id] = term;
}

Term Exporter::parameter(ValueId id) {
  const ValueInfo& info = graph().info(id);
  const Tensor value = values_(info.name);
  if (!value.defined() || value.dtype() != info.dtype || !(value.shape() == info.shape))
    throw Error(fmt::format("ONNX export: parameter '{}': expected {}{}, got {}", info.name, name_of(info.dtype), info.shape.str(),
                            value.defined() ? value.str() : "no value"));
  return writer_.initializer(writer_.keep(info.name), value);
}

Term Exporter::constant(ValueId id) {
  const ValueInfo& info = graph().info(id);
  if (other_) {
    const Tensor& other = other_->graph.info(id).constant;
    if (!(other.shape() == info.shape)) return filled_constant(id);
    if (!equal_bytes(info.constant, other)) {
      throw Error(Status::unsupported,
                  fmt::format("the elements of the constant '{}' depend on the batch size; {}", info.name, fixed_batch_remedy));
    }
  }
  return writer_.constant(info.constant, info.name.empty() ? "constant" : info.name);
}

Term Exporter::filled_constant(ValueId id) {
  const ValueInfo& info = graph().info(id);
  const Tensor value = info.constant.reshape({info.constant.count()}).select(0, 0).contiguous();
  if (!is_filled(info.constant, value) || !is_filled(other_->graph.info(id).constant, value)) {
    throw Error(Status::unsupported,
                fmt::format("the constant '{}' depends on the batch size and has different elements; {}", info.name, fixed_batch_remedy));
  }
  NodeInfo node;
  node.name = info.name.empty() ? "constant" : info.name;
  return Node(*this, node).expand(writer_.constant(value), {}, sizes(id));
}

// ---------------------------------------------------------------- nodes

void Exporter::export_node(const NodeInfo& node) {
  const auto is_used = [&](ValueId v) { return v != no_id && read_[v]; };
  if (std::ranges::none_of(node.outputs, is_used)) return;
  const std::size_t first = writer_.node_count();
  try {
    for (const ValueId input : node.inputs) {
      // A rule may write a constant in another form than its own.
      if (input != no_id && graph().info(input).kind != ValueKind::constant) term(input);
    }
    Node exported(*this, node);
    if (other_ && !(node.attributes == other_->graph.nodes()[static_cast<std::size_t>(&node - graph().nodes().data())].attributes))
      exported.fail(fmt::format("its attributes depend on the batch size; {}", fixed_batch_remedy));
    apply_rule(exported);
    name_results(node, first);
  } catch (const Failed&) {
  } catch (const Error& error) {
    if (error.status() != Status::unsupported) throw;
    problems_.push_back(fmt::format("node '{}' ({}): {}", node.name, op_name(node.op), error.what()));
  }
}

void Exporter::apply_rule(Node& node) const {
  const tenon_op op = node.info().op;
  if (graph::is_vendor_op(op)) return apply_vendor_op(node);
  const Rule* rule = find_rule(op);
  if (rule == nullptr) node.fail(refusal_of(op));
  rule->apply(node);
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (node.needs_output(i) && !terms_[node.info().outputs[i]].present()) {
      node.fail(fmt::format("its result {} is read, which the ONNX operator does not have", i));
    }
  }
}

void Exporter::name_results(const NodeInfo& node, std::size_t first) {
  for (const ValueId id : node.outputs) {
    if (id == no_id || !terms_[id].present() || !writer_.can_rename(terms_[id], first)) continue;
    const auto output = std::ranges::find(graph().outputs(), id, &GraphOutput::value);
    writer_.rename(terms_[id], output != graph().outputs().end()
                                   ? output_names_[static_cast<std::size_t>(output - graph().outputs().begin())]
                                   : writer_.free_name(node.name));
  }
}

}  // namespace tenon::onnx::exporting
