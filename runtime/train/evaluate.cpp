// SPDX-License-Identifier: Apache-2.0
// Model: loops over data without training: evaluate, predict, confusion matrix.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "train/feed.h"
#include "train/model_state.h"

namespace tenon {

Logs Model::State::evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size, bool pinned, const RunOptions& run) {
  train::FeedOptions options;
  options.batches.batch_size = batch_size;
  options.batches.shuffle = false;
  options.device = setup.batch_device();
  options.pinned = pinned;
  train::Feed batches(data, options, session.evaluation_buffers);
  Logs logs = setup.empty_logs();
  train::BatchMeans current;
  train::RunningMeans means;
  means.reset(logs.size());
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    test_batch({batch->x, batch->y, batch->sample_weights}, current, run);
    means.add(current.values, current.weight);
  }
  means.write(current.values);
  setup.write_logs(current.values, logs);
  return logs;
}

Logs Model::evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size, const RunOptions& run) {
  if (data == nullptr) throw Error("evaluate: expected a data set, got a null pointer");
  state_of(state_).setup.need_context();
  build(data->x_type().shape);
  return state_of(state_).evaluate(data, batch_size, true, run);
}

Tensor Model::predict(const Tensor& x, std::int64_t batch_size, const RunOptions& run) {
  return state_of(state_).predict(*this, train::Phase::predict, x, batch_size, run);
}

Tensor Model::predict_probabilities(const Tensor& x, std::int64_t batch_size) {
  return state_of(state_).predict(*this, train::Phase::probabilities, x, batch_size, {});
}

Tensor Model::State::predict(Model& model, train::Phase phase, const Tensor& x, std::int64_t batch_size, const RunOptions& run) {
  setup.need_context();
  if (x.shape().rank() == 0) throw Error("predict: x expects a batch axis, got a scalar");
  if (batch_size < 1) throw Error(fmt::format("predict: batch_size is {}, expected at least 1", batch_size));
  model.build(Shape(x.shape().dims().subspan(1)));
  const std::int64_t count = x.shape()[0];
  Tensor all;
  for (std::int64_t begin = 0; begin < count || !all.defined(); begin += batch_size) {
    const Tensor part = x.slice(0, begin, std::min(count, begin + batch_size));
    const std::array<Tensor, 1> inputs{part};
    const Tensor made = programs.get(phase, train::BatchType::of(part), run).run(inputs, run).front().to_host();
    if (!all.defined()) {
      Shape shape = made.shape();
      shape.set(0, count);
      all = Tensor::empty(made.dtype(), shape);
    }
    if (made.size_bytes() > 0) {
      std::memcpy(static_cast<char*>(all.raw()) + begin * (made.size_bytes() / made.shape()[0]), made.raw(),
                  static_cast<std::size_t>(made.size_bytes()));
    }
  }
  return all;
}

Tensor Model::confusion_matrix(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size) {
  State& s = state_of(state_);
  s.setup.need_context();
  if (data == nullptr) throw Error("confusion_matrix: expected a data set, got a null pointer");
  build(data->x_type().shape);
  Batches batches(data, {.batch_size = batch_size, .shuffle = false});
  const std::int64_t classes = s.parameters.layers().back().output.count();
  Tensor matrix = Tensor::zeros(DType::i64, {classes, classes});
  std::int64_t* counts = matrix.data<std::int64_t>();
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    const std::array<Tensor, 2> inputs{batch->x, batch->y};
    const std::vector<Tensor>& results = s.programs.get(train::Phase::classes, train::BatchType::of(batch->x, batch->y)).run(inputs);
    const Tensor host_labels = results[0].to_host(), host_classes = results[1].to_host();
    const auto* labels = host_labels.data<std::int64_t>();
    const auto* predicted = host_classes.data<std::int64_t>();
    for (std::int64_t i = 0; i < host_labels.count(); ++i) {
      if (s.setup.options.loss.ignore_index && labels[i] == *s.setup.options.loss.ignore_index) continue;
      if (labels[i] < 0 || labels[i] >= classes) {
        throw Error(fmt::format("confusion matrix: label {} at index {} of {} is out of range [0, {})", labels[i],
                                batch->indices[static_cast<std::size_t>(i)], data->name(), classes));
      }
      ++counts[labels[i] * classes + predicted[i]];
    }
  }
  return matrix;
}

}  // namespace tenon
