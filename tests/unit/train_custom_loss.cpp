// SPDX-License-Identifier: Apache-2.0
// Losses given as functions.
#include <doctest/doctest.h>

#include <cmath>

#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

/// The loss of the 0.9 quantile: 0.9 e above the output, -0.1 e below it.
Value quantile(Value y, Value target) {
  const Value error = target - y;
  return ops::maximum(0.9 * error, -0.1 * error);
}

LossDefinition custom(std::string name, std::function<Value(Value, Value)> function) {
  return {.loss = Loss::custom, .function = std::move(function), .name = std::move(name)};
}

std::shared_ptr<const ArrayDataset> line() {
  return generate_linear({.count = 64}).data;
}

TEST_CASE_FIXTURE(OnReference, "custom loss: the mean of what the function returns, with regularisation and gradients as of any loss") {
  Model model({layers::Activation{}});
  model.compile(context, {.loss = custom("quantile", quantile), .metrics = {Metric::mae}});
  const Tensor x = Tensor::of<float>({0, 0, 0, 0}, {4, 1}), y = Tensor::of<float>({1, -1, 2, 0}, {4, 1});
  CHECK(model.test_batch(x, y).loss() == doctest::Approx((0.9 + 0.1 + 1.8) / 4));
  CHECK(model.test_batch(x, y).logs[1].second == doctest::Approx(1));

  // as a function, mse learns what the one of the library does; a scalar is the mean itself
  const auto learned = [&](const LossDefinition& loss) {
    Model net({layers::Dense{1, Activation::linear, {.kernel_l2 = 0.1}}});
    net.compile(context, {.loss = loss});
    net.fit(line(), {.batch_size = 10});
    return weights(net);
  };
  CHECK(learned(custom("squares", [](Value a, Value b) { return ops::square(a - b); })) == learned({.loss = Loss::mse}));
  CHECK(learned(custom("mean of squares", [](Value a, Value b) { return ops::mse(a, b); })) == learned({.loss = Loss::mse}));
}

TEST_CASE_FIXTURE(OnReference, "custom loss: targets are what the function expects, and metrics are chosen by them") {
  const Tensor x = Tensor::of<float>({3, 1, 0, 2, 1, 0}, {2, 3}), labels = Tensor::of<std::int64_t>({0, 2}, {2});
  Model model({layers::Activation{Activation::softmax}});
  const auto focal = [](Value y, Value label) {
    const Value p = ops::reduce_sum(y * ops::one_hot(label, y.shape()[1], y.dtype()), {1});
    return -(ops::square(1.0 - p) * ops::log(p));
  };
  model.compile(context, {.loss = custom("focal", focal), .metrics = {Metric::accuracy, {Metric::top_k, 2}}});
  const BatchResult result = model.test_batch(x, labels);
  const double p0 = std::exp(3) / (std::exp(3) + std::exp(1) + 1), p1 = 1 / (std::exp(2) + std::exp(1) + 1);
  CHECK(result.loss() == doctest::Approx(-((1 - p0) * (1 - p0) * std::log(p0) + (1 - p1) * (1 - p1) * std::log(p1)) / 2));
  CHECK(result.logs[1].second == 0.5);
  CHECK(result.logs[2].second == 0.5);
  // one weight per sample, where the function returns one loss per sample
  const Tensor second = Tensor::of<float>({0, 2}, {2});
  CHECK(model.test_batch(x, labels, second).loss() == doctest::Approx(-(1 - p1) * (1 - p1) * std::log(p1)));
  CHECK_ERROR_CONTAINS("metric mse: cannot be used with the loss focal",
                       model.compile(context, {.loss = custom("focal", focal), .metrics = {Metric::mse}});
                       model.test_batch(x, labels));
}

TEST_CASE_FIXTURE(OnReference, "custom loss: what does not fit is refused with the name of the loss") {
  Model model({layers::Dense{1}});
  const auto run = [&](const LossDefinition& loss, const Tensor& weights = {}) {
    model.compile(context, {.loss = loss});
    const Tensor x = Tensor::of<float>({1, 2, 3}, {3, 1});
    model.train_batch(x, x, weights);
  };
  CHECK_ERROR("loss custom: expected a function and a name: {.loss = Loss::custom, .function = ..., .name = \"...\"}",
              run({.loss = Loss::custom}));
  CHECK_ERROR("loss mse: has no function and no name; Loss::custom has", run({.loss = Loss::mse, .function = quantile}));
  CHECK_ERROR(
      "loss sum: expected its function to return floating-point losses (3, ...), one or more for each sample, or their mean as a "
      "scalar, got f32(1)",
      run(custom("sum", [](Value y, Value) { return ops::reduce_sum(y, {0}); })));
  CHECK_ERROR_CONTAINS("loss none: expected its function to return", run(custom("none", [](Value, Value) { return Value(); })));
  CHECK_ERROR("loss mean: its function returns a scalar; with sample weights it returns the losses of the samples, (3, ...)",
              run(custom("mean", [](Value y, Value t) { return ops::mse(y, t); }), Tensor::zeros(DType::f32, {3})));
}

TEST_CASE_FIXTURE(InFolder, "custom loss: the summary and a checkpoint have its name, and a resumed model needs it again") {
  const Context context(deterministic());
  const auto make = [&](const LossDefinition& loss) { return compiled(context, {layers::Dense{1}}, {.loss = loss}); };
  Model model = make(custom("quantile", quantile));
  model.fit(line(), {.epochs = 1});
  CHECK(contains(model.summary(), " Loss: quantile (custom)\n"));
  model.save(folder.path(), "own");
  const std::string file = folder.path() + "/own.yaml";

  Model same = make(custom("quantile", quantile));
  same.load(file);
  same.fit(line(), {.epochs = 2});
  model.fit(line(), {.epochs = 2});
  CHECK(weights(same) == weights(model));

  Model plain = make({.loss = Loss::mse});
  CHECK_ERROR(file +
                  ": was trained with the custom loss 'quantile', this model has the loss mse; compile it with the function of that loss "
                  "before, for no file has it, or load the weights alone",
              plain.load(file));
  plain.load(file, Model::Load::weights);
  plain.save(folder.path(), "plain");
  CHECK_ERROR_CONTAINS("was trained with a loss of the library, this model has the custom loss 'quantile'; load the weights alone",
                       same.load(folder.path() + "/plain.yaml"));
}

}  // namespace
}  // namespace tenon::test
