// SPDX-License-Identifier: Apache-2.0
#include "exec/immediate.h"

#include <fmt/core.h>

#include <tenon/tensor_functions.h>

#include "exec/context_state.h"

namespace tenon {
namespace exec {
namespace {

/// The bytes that determine a graph's program; each part has a fixed size or follows its size.
class Key {
 public:
  explicit Key(const std::string& device) { add_bytes(device.data(), device.size()); }

  void add(const Graph& graph) {
    for (const ValueInfo& value : graph.values()) {
      add(value.kind);
      add(value.dtype);
      add_list(value.shape.dims());
      if (value.kind == ValueKind::constant) add_bytes(value.constant.raw(), static_cast<std::size_t>(value.constant.size_bytes()));
    }
    add(graph.nodes().size());
    for (const NodeInfo& node : graph.nodes()) {
      add(node.op);
      bytes_.append(static_cast<const char*>(node.attributes.data()), Attributes::capacity);
      add_list(std::span(node.inputs));
      add_list(std::span(node.outputs));
    }
    for (const GraphOutput& output : graph.outputs()) add(output.value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  void add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_bytes(const void* data, std::size_t size) {
    add(size);
    bytes_.append(static_cast<const char*>(data), size);
  }
  template <class T>
  void add_list(std::span<const T> list) {
    add_bytes(list.data(), list.size_bytes());
  }

  std::string bytes_;
};

}  // namespace

std::vector<Tensor> run_immediately(const Context& context, const Device& device, const Graph& graph, std::span<const Tensor> inputs) {
  Key key(device.name());
  key.add(graph);
  ContextState& state = *context.state();
  const std::lock_guard lock(state.immediate_mutex);
  Program& program = state.immediate.get(key.bytes(), [&] { return Program(context, graph, {.device = device.name()}); });
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < program.output_count(); ++i) outputs.push_back(program.make_output(i));
  program.run(inputs, outputs);
  return outputs;
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
