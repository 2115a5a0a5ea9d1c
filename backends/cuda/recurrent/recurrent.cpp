// SPDX-License-Identifier: Apache-2.0
#include "recurrent/recurrent.h"

#include <algorithm>

#include "device/options.h"
#include "kernel/launch.h"

namespace tenon::cuda {

Recurrent::Recurrent(const sdk::Call& a_call, std::uint32_t first_operand, std::int64_t gate_count)
    : call(a_call),
      first(first_operand),
      steps(call.inputs[first].shape[0]),
      batch(call.inputs[first].shape[1]),
      features(call.inputs[first].shape[2]),
      directions(call.inputs[first + 2].shape[0]),
      units(call.inputs[first + 2].shape[2]),
      gates(gate_count),
      direction(call.attr<tenon_attributes_recurrent>().direction) {}

Step Recurrent::step(std::int64_t index) const {
  Step step{};
  step.index = index;
  for (std::int64_t d = 0; d < directions; ++d) {
    step.time[d] = reverse(d) ? steps - 1 - index : index;
    step.before[d] = reverse(d) ? step.time[d] + 1 : step.time[d] - 1;
  }
  step.batch = batch;
  step.units = units;
  step.directions = directions;
  step.elements = state_elements();
  return step;
}

PersistentPlan Recurrent::persistent_plan(int vectors, int exchanges, bool gradient) const {
  if (call.device == nullptr) return {};
  auto& device = static_cast<Device&>(*call.device);
  const Options& options = options_of(device);
  if (options.recurrence == Options::Recurrence::library) return {};
  const bool groups = options.recurrence == Options::Recurrence::cooperative;
  if (groups && !device.cooperative()) return {};
  const tenon_dtype dtype = call.inputs[first].dtype;
  return plan_persistent({.steps = steps,
                          .batch = batch,
                          .directions = directions,
                          .units = units,
                          .gates = gates,
                          .weight_bytes = static_cast<std::size_t>(sdk::size_of(dtype)),
                          .state_bytes = dtype == TENON_DTYPE_F64 ? sizeof(double) : sizeof(float),
                          .vectors = vectors,
                          .exchanges = exchanges,
                          .gradient = gradient},
                         {device.multiprocessors(), device.max_shared_bytes(), groups});
}

// More results may need less, and GRU computes the gates of a step in parts.

std::size_t Recurrent::forward_workspace() const {
  std::size_t bytes = product_workspace_bytes(rows() * all_columns());
  for (std::int64_t n = 1; n <= gates; ++n) bytes = std::max(bytes, product_workspace_bytes(state_elements() * n));
  return bytes;
}

std::size_t Recurrent::backward_workspace() const {
  std::size_t bytes = product_workspace_bytes(state_elements());
  bytes = std::max(bytes, product_workspace_bytes(rows() * features));
  bytes = std::max(bytes, product_workspace_bytes(all_columns() * features));
  for (std::int64_t n = 1; n <= gates; ++n) bytes = std::max(bytes, product_workspace_bytes(n * units * units));
  return bytes;
}

void Recurrent::multiply(const Factor& a, const Factor& b, void* y, bool adds, bool each_direction, void* workspace) const {
  Product product{.dtype = call.inputs[first].dtype,
                  .math = call.math,
                  .a_view = a.view,
                  .b_view = b.view,
                  .a = a.data,
                  .b = b.data,
                  .y = y,
                  .beta = adds ? 1.0 : 0.0,
                  .c = adds ? y : nullptr};
  if (each_direction && directions > 1) {
    product.batch.count = directions;
    product.batch.rank = 1;
    product.batch.sizes[0] = directions;
    product.batch.strides[0][0] = a.of_direction;
    product.batch.strides[1][0] = b.of_direction;
  }
  cuda::multiply(stream_of(call), product, workspace);
}

void Recurrent::input_product(void* sums, void* workspace) const {
  const sdk::MatrixView w{all_columns(), features, features, 1};
  multiply({call.inputs[first].data, {rows(), features, features, 1}}, {weights(), w.transposed()}, sums, false, false, workspace);
}

void Recurrent::state_product(const void* h, std::int64_t begin, std::int64_t n, void* out, void* workspace) const {
  const sdk::MatrixView r{n * units, units, units, 1};
  multiply({h, {batch, units, units, 1}, batch * units},
           {at(recurrent_weights(), begin * units * units), r.transposed(), columns() * units}, out, false, true, workspace);
}

void Recurrent::state_gradient(const void* d, std::int64_t begin, std::int64_t n, bool adds, void* dh, void* workspace) const {
  multiply({at(d, begin * units), {batch, n * units, columns(), 1}, batch * columns()},
           {at(recurrent_weights(), begin * units * units), {n * units, units, units, 1}, columns() * units}, dh, adds, true, workspace);
}

void Recurrent::input_gradients(const void* d_gates, void* workspace) const {
  const sdk::MatrixView gate_view{rows(), all_columns(), all_columns(), 1}, x_view{rows(), features, features, 1};
  const sdk::MatrixView w_view{all_columns(), features, features, 1};
  multiply({d_gates, gate_view}, {weights(), w_view}, call.outputs[0].data, false, false, workspace);
  multiply({d_gates, gate_view.transposed()}, {call.inputs[first].data, x_view}, call.outputs[1].data, false, false, workspace);
}

void Recurrent::recurrent_gradient(const void* d_gates, std::int64_t d, std::int64_t begin, std::int64_t n, const void* states,
                                   std::int64_t row_step, void* workspace) const {
  const std::int64_t column = d * columns() + begin * units;
  const sdk::MatrixView gate_view{rows(), n * units, all_columns(), 1};
  multiply({at(d_gates, column), gate_view.transposed()}, {states, {rows(), units, row_step, 1}}, at(call.outputs[2].data, column * units),
           false, false, workspace);
}

}  // namespace tenon::cuda
