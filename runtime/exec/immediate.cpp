// SPDX-License-Identifier: Apache-2.0
#include "exec/immediate.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include <tenon/tensor_functions.h>

#include "core/element.h"
#include "exec/context_state.h"
#include "exec/placement.h"

namespace tenon {
namespace exec {
namespace {

constexpr std::size_t max_known_ops = 1024;

/// The strides of a view on the device; empty: the tensor is dense, or will be when it is copied there.
std::span<const std::int64_t> strides_of(const Device& device, const Tensor& x) {
  const bool there = x.storage()->device == device.state();
  return x.is_dense() || !there ? std::span<const std::int64_t>() : std::span(x.strides(), x.shape().rank());
}

ProgramKey key_for(const Device& device) {
  ProgramKey key;
  key.reserve(512);
  key.add_list(std::span(device.name()));
  return key;
}

void add(ProgramKey& key, const Attributes& attributes) {
  key.add_bytes(attributes.data(), Attributes::capacity);
}

std::string key_of(const Device& device, const Graph& graph) {
  ProgramKey key = key_for(device);
  for (const ValueInfo& value : graph.values()) {
    key.add(value.kind);
    key.add(value.dtype, value.shape);
    key.add_list(std::span(value.strides));
    if (value.kind == ValueKind::constant) {
      key.add_list(std::span(static_cast<const char*>(value.constant.raw()), static_cast<std::size_t>(value.constant.size_bytes())));
    }
  }
  key.add(graph.nodes().size());
  for (const NodeInfo& node : graph.nodes()) {
    key.add(node.op);
    add(key, node.attributes);
    key.add_list(std::span(node.inputs));
    key.add_list(std::span(node.outputs));
  }
  for (const GraphOutput& output : graph.outputs()) key.add(output.value);
  return key.bytes();
}

std::string key_of(const Device& device, tenon_op op, std::span<const Tensor> operands, const Attributes& attributes,
                   const NodeOptions& options) {
  ProgramKey key = key_for(device);
  key.add(op);
  add(key, attributes);
  key.add(options.shape.has_value());
  if (options.shape) key.add_list(options.shape->dims());
  key.add_list(std::span<const std::int64_t>(options.sizes));
  for (const Tensor& x : operands) {
    key.add(x.defined() ? x.dtype() : DType::none, x.defined() ? x.shape() : Shape());
    if (x.defined()) key.add_list(strides_of(device, x));
  }
  return key.bytes();
}

Graph graph_of(const Device& device, tenon_op op, std::span<const Tensor> operands, const Attributes& attributes,
               const NodeOptions& options) {
  Graph graph;
  std::vector<Value> values;
  for (const Tensor& x : operands) {
    const std::size_t index = graph.values().size();
    values.push_back(x.defined() ? graph.input(fmt::format("input_{}", index), x.dtype(), x.shape(), strides_of(device, x)) : Value());
  }
  const std::vector<Value> results = graph.apply(op, values, attributes, options);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("output_{}", i), results[i]);
  return graph;
}

/// Runs the graph's program; `make_graph` gives the graph if its program is not cached. The caller holds immediate_mutex.
template <class MakeGraph>
std::vector<Tensor> run(const Context& context, const Device& device, const std::string& key, MakeGraph&& make_graph,
                        std::span<const Tensor> inputs) {
  Program& program = context.state()->immediate.get(key, [&] { return Program(context, make_graph(), {.device = device.name()}); });
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < program.output_count(); ++i) outputs.push_back(program.make_output(i));
  program.run(inputs, outputs);
  return outputs;
}

}  // namespace

std::vector<Tensor> run_immediately(const Context& context, const Device& device, const Graph& graph, std::span<const Tensor> inputs) {
  const std::string key = key_of(device, graph);
  const auto make_graph = [&] { return graph; };
  const std::lock_guard lock(context.state()->immediate_mutex);
  return run(context, device, key, make_graph, inputs);
}

std::vector<Tensor> run_immediately(const Context& context, const Device& device, tenon_op op, std::span<const Tensor> operands,
                                    const Attributes& attributes, const NodeOptions& options) {
  std::vector<Tensor> inputs;
  std::copy_if(operands.begin(), operands.end(), std::back_inserter(inputs), [](const Tensor& x) { return x.defined(); });
  const auto make_graph = [&] { return graph_of(device, op, operands, attributes, options); };
  std::string key = key_of(device, op, operands, attributes, options);
  const std::lock_guard lock(context.state()->immediate_mutex);
  auto& known = context.state()->immediate_ops;
  auto found = known.find(key);
  if (found == known.end()) {
    std::string key_of_graph = key_of(device, make_graph());
    if (known.size() >= max_known_ops) known.clear();
    found = known.emplace(std::move(key), std::move(key_of_graph)).first;
  }
  return run(context, device, found->second, make_graph, inputs);
}

std::vector<Tensor> run_where_supported(const Context& context, const Device& device, tenon_op op, std::span<const Tensor> operands,
                                        const Attributes& attributes, const NodeOptions& options) {
  const Device able(able_device(*context.state(), graph_of(device, op, operands, attributes, options), device.state()));
  std::vector<Tensor> results = run_immediately(context, able, op, operands, attributes, options);
  if (able.state() == device.state()) return results;
  for (Tensor& result : results) result = result.to(device);
  return results;
}

}  // namespace exec

namespace immediate {
namespace {

std::shared_ptr<exec::DeviceState> device_of(const Tensor& x) {
  return std::dynamic_pointer_cast<exec::DeviceState>(x.storage()->device);
}

}  // namespace

Value Call::operand(const Tensor& x) {
  if (!x.defined()) return {};
  const std::shared_ptr<exec::DeviceState> device = device_of(x);
  const std::size_t index = operands_.size();
  if (device == nullptr) {
    throw Error(fmt::format("{}: operand {}, {}, is in host memory; expected memory of a device: copy it with Tensor::to(device)",
                            function_, index, x.str()));
  }
  if (const auto first = index == 0 ? device : device_of(operands_[0]); first != device) {
    const std::string& name = device->info.name;
    throw Error(
        fmt::format("{}: expected operands on one device, got operand 0 on {} and operand {} on {}{}: copy one with Tensor::to(device)",
                    function_, first->info.name, index, name, name == first->info.name ? " of another context" : ""));
  }
  operands_.push_back(x);
  return graph_.input(fmt::format("input_{}", index), x.dtype(), x.shape(), exec::strides_of(Device(device), x));
}

void Call::result(Value value) {
  if (value.present()) graph_.output(fmt::format("output_{}", graph_.outputs().size()), value);
}

void Call::run() {
  if (operands_.empty()) throw Error(fmt::format("{}: expected at least one tensor with elements to compute on, got none", function_));
  const Device device(device_of(operands_[0]));
  auto context = device.state()->context.lock();
  if (context == nullptr) {
    throw Error(
        fmt::format("{}: the Context of {} no longer exists; keep it while its tensors are computed with", function_, device.name()));
  }
  results_ = exec::run_immediately(Context(std::move(context)), device, graph_, operands_);
}

Tensor Call::tensor(Value value) const {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (value.present() && graph_.outputs()[i].value == value.id()) return results_[i];
  }
  return {};
}

namespace {

bool all_on_host(const std::vector<Tensor>& tensors) {
  return !tensors.empty() &&
         std::all_of(tensors.begin(), tensors.end(), [](const Tensor& x) { return x.defined() && x.storage()->device == nullptr; });
}

/// Of tensors in host memory.
Tensor concat_on_host(const std::vector<Tensor>& tensors, std::int64_t axis) {
  const Tensor& first = tensors[0];
  const auto rank = static_cast<std::int64_t>(first.shape().rank());
  const std::int64_t along = axis < 0 ? axis + rank : axis;
  if (along < 0 || along >= rank) throw Error(fmt::format("concat: axis {} is out of range for {}", axis, first.str()));
  Shape shape = first.shape();
  std::int64_t size = 0;
  for (const Tensor& x : tensors) {
    Shape own = x.shape();
    const bool ranks = own.rank() == shape.rank();
    if (ranks)
      size += own[static_cast<std::size_t>(along)], own.set(static_cast<std::size_t>(along), shape[static_cast<std::size_t>(along)]);
    if (x.dtype() != first.dtype() || !ranks || !(own == shape))
      throw Error(
          fmt::format("concat: expected one dtype, and equal sizes except along axis {}, got {} and {}", along, first.str(), x.str()));
  }
  shape.set(static_cast<std::size_t>(along), size);
  Tensor result = Tensor::empty(first.dtype(), shape);
  std::int64_t at = 0;
  for (const Tensor& x : tensors) {
    const std::int64_t next = at + x.shape()[static_cast<std::size_t>(along)];
    result.slice(along, at, next).copy_from(x);
    at = next;
  }
  return result;
}

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (all_on_host(tensors)) return concat_on_host(tensors, axis);
  return detail::call(
      "concat", [](const auto&... arguments) { return ops::concat(arguments...); }, tensors, axis);
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (!all_on_host(tensors))
    return detail::call(
        "stack", [](const auto&... arguments) { return ops::stack(arguments...); }, tensors, axis);
  std::vector<Tensor> parts;
  for (const Tensor& x : tensors) {
    if (!(x.shape() == tensors[0].shape())) throw Error(fmt::format("stack: expected one shape, got {} and {}", tensors[0].str(), x.str()));
    parts.push_back(x.unsqueeze(axis));
  }
  return concat_on_host(parts, axis);
}

}  // namespace immediate

Tensor Tensor::to(DType dtype) const {
  if (!defined()) throw Error(fmt::format("Tensor::to {}: got an undefined tensor", name_of(dtype)));
  if (dtype_ == dtype && is_dense()) return *this;
  if (storage_->device != nullptr) return dtype_ == dtype ? contiguous() : immediate::cast(*this, dtype);
  Tensor converted = Tensor::empty(dtype, shape_);
  const Tensor dense = is_dense() ? *this : to_host();
  convert_elements(converted.raw(), dtype, dense.raw(), dtype_, count(), "Tensor::to");
  return converted;
}

}  // namespace tenon
