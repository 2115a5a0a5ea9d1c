// SPDX-License-Identifier: Apache-2.0
#include "exec/immediate.h"

#include <fmt/core.h>

#include <type_traits>

#include <tenon/tensor_functions.h>

#include "exec/context_state.h"

namespace tenon {
namespace exec {
namespace {

/// The bytes that determine a program; each part has a fixed size or follows its size.
class Key {
 public:
  enum class Of : char { graph, op };
  Key(Of kind, const Device& device) {
    bytes_.reserve(512);
    add(kind);
    add_list(std::span(device.name()));
  }

  void add(const Graph& graph) {
    for (const ValueInfo& value : graph.values()) {
      add(value.kind);
      add(value.dtype, value.shape);
      if (value.kind == ValueKind::constant) {
        add_list(std::span(static_cast<const char*>(value.constant.raw()), static_cast<std::size_t>(value.constant.size_bytes())));
      }
    }
    add(graph.nodes().size());
    for (const NodeInfo& node : graph.nodes()) {
      add(node.op);
      add(node.attributes);
      add_list(std::span(node.inputs));
      add_list(std::span(node.outputs));
    }
    for (const GraphOutput& output : graph.outputs()) add(output.value);
  }
  void add(DType dtype, const Shape& shape) {
    add(dtype);
    add_list(shape.dims());
  }
  void add(const Attributes& attributes) { bytes_.append(static_cast<const char*>(attributes.data()), Attributes::capacity); }
  template <class T>
  void add(T value) {
    static_assert(std::is_scalar_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void add_list(std::span<const T> list) {
    add(list.size());
    bytes_.append(reinterpret_cast<const char*>(list.data()), list.size_bytes());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Runs the program of that key; `make_graph` gives the graph of one that is not cached.
template <class MakeGraph>
std::vector<Tensor> run_cached(const Context& context, const Device& device, const Key& key, MakeGraph&& make_graph,
                               std::span<const Tensor> inputs) {
  ContextState& state = *context.state();
  const std::lock_guard lock(state.immediate_mutex);
  Program& program = state.immediate.get(key.bytes(), [&] { return Program(context, make_graph(), {.device = device.name()}); });
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < program.output_count(); ++i) outputs.push_back(program.make_output(i));
  program.run(inputs, outputs);
  return outputs;
}

}  // namespace

std::vector<Tensor> run_immediately(const Context& context, const Device& device, const Graph& graph, std::span<const Tensor> inputs) {
  Key key(Key::Of::graph, device);
  key.add(graph);
  const auto given = [&]() -> const Graph& { return graph; };
  return run_cached(context, device, key, given, inputs);
}

std::vector<Tensor> run_immediately(const Context& context, const Device& device, tenon_op op, std::span<const Tensor> operands,
                                    const Attributes& attributes, const NodeOptions& options) {
  Key key(Key::Of::op, device);
  key.add(op);
  key.add(attributes);
  key.add(options.shape.has_value());
  if (options.shape) key.add_list(options.shape->dims());
  key.add_list(std::span<const std::int64_t>(options.sizes));
  std::vector<Tensor> inputs;
  for (const Tensor& x : operands) {
    key.add(x.defined() ? x.dtype() : DType::none, x.defined() ? x.shape() : Shape());
    if (x.defined()) inputs.push_back(x);
  }
  const auto make_graph = [&] {
    Graph graph;
    std::vector<Value> values;
    for (const Tensor& x : operands) {
      const std::size_t index = graph.values().size();
      values.push_back(x.defined() ? graph.input(fmt::format("input_{}", index), x.dtype(), x.shape()) : Value());
    }
    const std::vector<Value> results = graph.apply(op, values, attributes, options);
    for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("output_{}", i), results[i]);
    return graph;
  };
  return run_cached(context, device, key, make_graph, inputs);
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
  return graph_.input(fmt::format("input_{}", index), x.dtype(), x.shape());
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

}  // namespace immediate
}  // namespace tenon
