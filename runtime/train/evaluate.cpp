// SPDX-License-Identifier: Apache-2.0
// Model: loops over data without training: evaluate, predict, confusion matrix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "train/binding.h"
#include "train/datasets/feed.h"
#include "train/datasets/source_batches.h"
#include "train/model_state.h"

namespace tenon {

Logs Model::State::evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size, bool pinned, const RunOptions& run) {
  train::FeedOptions options;
  options.batches.batch_size = batch_size;
  options.batches.shuffle = false;
  options.device = setup.batch_device();
  options.pinned = pinned;
  options.batches.part = setup.part_of_batches();
  train::Feed batches(data, options, session.evaluation_buffers);
  return evaluate(*data, batches, run);
}

Logs Model::State::evaluate(BatchSource& source, const RunOptions& run) {
  train::SourceBatches batches(source);
  return evaluate(train::SourceTypes(source), batches, run);
}

Logs Model::State::evaluate(const Dataset& types, train::EpochBatches& batches, const RunOptions& run) {
  train::BoundBatches bound(setup, types);
  Logs logs = setup.empty_logs();
  train::BatchMeans current;
  train::RunningMeans means;
  means.reset(logs.size());
  batches.start(0);
  bool is_empty = true, is_shared = false;
  while (const Batch* batch = batches.next()) {
    const train::BatchTensors tensors = bound(*batch);
    test_batch({tensors.inputs, tensors.targets, tensors.sample_weights}, current, run);
    const bool counts = tensors.share.whole == 0 || tensors.share.counted > 0;
    if (counts) means.add(current.values, current.weight);
    is_shared = tensors.share.whole > 0;
    is_empty = false;
  }
  if (is_empty) throw Error(fmt::format("evaluate: {}: expected at least 1 batch, got none", types.name()));
  if (is_shared) {  // each process has evaluated its part
    means.sums.push_back(means.weight);
    setup.processes->sum(means.sums);
    means.weight = means.sums.back();
    means.sums.pop_back();
  }
  means.write(current.values);
  setup.write_logs(current.values, logs);
  return logs;
}

Logs Model::evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size, const RunOptions& run) {
  if (data == nullptr) throw Error("evaluate: expected a data set, got a null pointer");
  build_for(*data);
  return state_of(state_).evaluate(data, batch_size, true, run);
}

Logs Model::evaluate(BatchSource& batches, const RunOptions& run) {
  build_for(train::SourceTypes(batches));
  return state_of(state_).evaluate(batches, run);
}

Tensor Model::predict(const Tensor& x, std::int64_t batch_size, const RunOptions& run) {
  State& s = state_of(state_);
  s.setup.expect_one_of_each("predict");
  return s.predict(train::Phase::predict, {&x, 1}, batch_size, run).front();
}
NamedTensors Model::predict(const NamedTensors& inputs, std::int64_t batch_size, const RunOptions& run) {
  return state_of(state_).predict(train::Phase::predict, inputs, batch_size, run);
}

Tensor Model::predict_probabilities(const Tensor& x, std::int64_t batch_size) {
  State& s = state_of(state_);
  s.setup.expect_one_of_each("predict");
  return s.predict(train::Phase::probabilities, {&x, 1}, batch_size, {}).front();
}
NamedTensors Model::predict_probabilities(const NamedTensors& inputs, std::int64_t batch_size) {
  return state_of(state_).predict(train::Phase::probabilities, inputs, batch_size, {});
}

NamedTensors Model::State::with_names(std::vector<Tensor> outputs) const {
  NamedTensors named;
  for (std::size_t i = 0; i < outputs.size(); ++i) named[setup.interface.outputs[i].name] = std::move(outputs[i]);
  return named;
}

NamedTensors Model::State::predict(train::Phase phase, const NamedTensors& inputs, std::int64_t batch_size, const RunOptions& run) {
  return with_names(predict(phase, train::inputs_in_order(setup, inputs, "predict"), batch_size, run));
}

std::vector<Tensor> Model::State::predict(train::Phase phase, std::span<const Tensor> inputs, std::int64_t batch_size,
                                          const RunOptions& run) {
  setup.need_context();
  std::vector<Shape> samples;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape();
    const std::string name = inputs.size() == 1 ? "x" : setup.interface.inputs[i].name;
    if (shape.rank() == 0) throw Error(fmt::format("predict: {} expects a batch axis, got a scalar", name));
    if (shape[0] != inputs[0].shape()[0]) {
      throw Error(fmt::format("predict: expected inputs of as many samples, got {} {} and {} {}", setup.interface.inputs[0].name,
                              inputs[0].str(), name, inputs[i].str()));
    }
    samples.emplace_back(shape.dims().subspan(1));
  }
  if (batch_size < 1) throw Error(fmt::format("predict: batch_size is {}, expected at least 1", batch_size));
  parameters.build(samples);
  const std::int64_t count = inputs[0].shape()[0];
  std::vector<Tensor> all;
  for (std::int64_t begin = 0; begin < count || all.empty(); begin += batch_size) {
    std::vector<Tensor> parts;
    for (const Tensor& input : inputs) parts.push_back(input.slice(0, begin, std::min(count, begin + batch_size)));
    const std::vector<Tensor>& results = programs.get(phase, train::BatchTensors{parts}, run).run(parts, run);
    for (std::size_t i = 0; i < setup.interface.outputs.size(); ++i) {
      const Tensor made = results[i].to_host();
      if (all.size() == i) {
        Shape shape = made.shape();
        shape.set(0, count);
        all.push_back(Tensor::empty(made.dtype(), shape));
      }
      if (made.size_bytes() > 0) {
        std::memcpy(static_cast<char*>(all[i].raw()) + begin * (made.size_bytes() / made.shape()[0]), made.raw(),
                    static_cast<std::size_t>(made.size_bytes()));
      }
    }
  }
  return all;
}

Tensor Model::confusion_matrix(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size) {
  State& s = state_of(state_);
  s.setup.need_context();
  if (data == nullptr) throw Error("confusion_matrix: expected a data set, got a null pointer");
  if (s.setup.interface.outputs.size() != 1) {
    throw Error(fmt::format("confusion matrix: expected a model with one output, got {}", fmt::join(s.setup.output_names(), ", ")));
  }
  build_for(*data);
  train::BoundBatches bound(s.setup, *data);
  Batches batches(data, {.batch_size = batch_size, .shuffle = false});
  const LossDefinition& loss = s.setup.losses[0].loss;
  const std::int64_t classes = s.parameters.outputs()[0].shape.count();
  Tensor matrix = Tensor::zeros(DType::i64, {classes, classes});
  std::int64_t* counts = matrix.data<std::int64_t>();
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    const train::BatchTensors tensors = bound(*batch);
    std::vector<Tensor> inputs(tensors.inputs.begin(), tensors.inputs.end());
    inputs.insert(inputs.end(), tensors.targets.begin(), tensors.targets.end());
    const std::vector<Tensor>& results =
        s.programs.get(train::Phase::classes, train::BatchTensors{tensors.inputs, tensors.targets}).run(inputs);
    const Tensor host_labels = results[0].to_host(), host_classes = results[1].to_host();
    const auto* labels = host_labels.data<std::int64_t>();
    const auto* predicted = host_classes.data<std::int64_t>();
    for (std::int64_t i = 0; i < host_labels.count(); ++i) {
      if (loss.ignore_index && labels[i] == *loss.ignore_index) continue;
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
