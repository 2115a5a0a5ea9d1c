// SPDX-License-Identifier: Apache-2.0
// Layers divided into stages on several devices, through which micro-batches go.
#include <cmath>
#include <memory>
#include <set>
#include <stop_token>
#include <utility>

#include "parallel_testing.h"
#include "temporary_folder.h"

namespace tenon::test {
namespace {

CompileOptions pipelined(int stages, std::int64_t micro_batches) {
  CompileOptions options = classification(names("openblas", stages));
  options.optimizer = {.kind = OptimizerDefinition::Kind::adam, .learning_rate = 0.01, .clip = {.global_norm = 0.5}};
  options.parallel.mode = ParallelOptions::Mode::pipeline;
  options.parallel.micro_batches = micro_batches;
  return options;
}

CompileOptions not_pipelined() {
  CompileOptions options = pipelined(2, 4);
  options.parallel = {};
  return options;
}

/// A net without layers that depend on the whole batch, with a branch inside of a stage and regularisation.
ModelDefinition deep_net() {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  layers::Residual residual;
  residual.body = {layers::Dense{32, Activation::tanh}};
  definition.layers = {
      layers::Flatten{},   layers::Dense{32, Activation::relu, {.kernel_l2 = 0.01}}, residual,
      layers::LayerNorm{}, layers::Dense{24, Activation::relu, {.kernel_l2 = 0.01}}, layers::Dense{10, Activation::softmax}};
  return definition;
}

TEST_CASE("pipeline: stages train as one device does, with uneven batches, accumulation and ignored labels, and repeat their bits") {
  const auto data = generate_digits({.count = 47});  // the last batch has 3 samples
  const Context context(devices_of("openblas", 3));
  for (const std::int64_t accumulate : {1, 2}) {
    for (const bool ignores : {false, true}) {
      const FitOptions fit{.batch_size = 11, .epochs = 2, .accumulate = accumulate};
      const auto train = [&](CompileOptions options) {
        if (ignores) options.loss.ignore_index = 3;
        auto model = std::make_unique<Model>(deep_net());
        model->compile(context, options);
        History history = model->fit(data, fit);
        return std::pair(std::move(model), std::move(history));
      };
      auto [one, expected] = train(not_pipelined());
      for (const auto& division : std::vector<std::pair<int, std::int64_t>>{{2, 1}, {2, 4}, {3, 2}, {3, 5}}) {
        const int stages = division.first;
        const std::int64_t micro_batches = division.second;
        CAPTURE(accumulate);
        CAPTURE(ignores);
        CAPTURE(stages);
        CAPTURE(micro_batches);
        auto [model, history] = train(pipelined(stages, micro_batches));
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {
          for (std::size_t i = 0; i < 2; ++i) CHECK(std::abs(history[epoch].logs[i].second - expected[epoch].logs[i].second) <= 1e-9);
        }
        for (const auto& entry : one->parameters().all()) {
          const auto& name = entry.first;
          CAPTURE(name);
          if (!is_training_state(name)) CHECK(all_close(model->parameters().get(name).to_host(), entry.second.to_host(), 1e-7, 1e-7));
        }
        CHECK(std::abs(model->evaluate(data)[0].second - one->evaluate(data)[0].second) <= 1e-9);
        if (micro_batches != 5) continue;
        auto [again, same] = train(pipelined(stages, micro_batches));
        check_equal(*again, *model);
      }
    }
  }
}

TEST_CASE("pipeline: layers are divided by their work, or by their devices, and the placement shows it") {
  const Context context(devices_of("openblas", 3));
  ModelDefinition definition = deep_net();
  const auto devices_by_layer = [&](int stages) {
    Model model(definition);
    model.compile(context, pipelined(stages, 2));
    model.build({28, 28});
    std::vector<std::string> devices;
    for (const LayerSummary& layer : model.layers()) devices.push_back(layer.device);
    return devices;
  };
  const std::string a = "openblas:0", b = "openblas:1", c = "openblas:2";
  CHECK(devices_by_layer(2) == std::vector<std::string>{a, a, b, b, b, b, b});  // the first dense layer is most of the work
  CHECK(devices_by_layer(3) == std::vector<std::string>{a, a, b, b, c, c, c});
  definition.layers[0].device = a;
  definition.layers[4].device = "cpu:1";
  CHECK(devices_by_layer(2) == std::vector<std::string>{a, a, a, a, a, b, b});
  Model model(definition);
  model.compile(context, pipelined(2, 4));
  model.build({28, 28});
  std::set<std::string> seen;
  for (const Placement& node : model.explain(16).nodes) {
    const std::string prefix = node.node.substr(0, node.node.find('/', 8) + 1);
    CHECK(node.device == (node.node.starts_with("stage_1/") ? a : b));
    if (node.node.starts_with("stage_1/")) seen.insert(prefix);
  }
  CHECK(seen == std::set<std::string>{"stage_1/forward/", "stage_1/backward/"});
}

TEST_CASE("pipeline: batch normalisation, dropout, frozen layers and 16-bit products; checkpoints go to and from one device") {
  const auto data = generate_digits({.count = 40});
  Config config = devices_of("openblas", 2);
  config.precision = Precision::mixed_bfloat16;
  const Context context(config);
  ModelDefinition definition = small_convnet();
  definition.dtype = DType::f32;
  definition.layers.insert(definition.layers.begin() + 4, layers::Dropout{0.25});
  definition.layers[5].device = "openblas:1";
  CompileOptions options = pipelined(2, 4);
  options.frozen = {"conv2d/*"};
  const TemporaryFolder folder;
  const FitOptions fit{.batch_size = 20};
  Model first(definition), second(definition), one(definition);
  for (Model* model : {&first, &second}) {
    model->compile(context, options);
    model->fit(data, fit);
  }
  check_equal(first, second);
  const Tensor mean = first.parameters().get("batch_norm/running_mean").to_host();
  CHECK(std::abs(floats(mean)[0]) > 0);
  first.save(folder.path(), "pipeline");
  CompileOptions alone = not_pipelined();
  alone.frozen = options.frozen;
  one.compile(context, alone);
  one.load(folder.file("pipeline.yaml"));
  check_equal(one, first);
  one.fit(data, {.batch_size = 20, .epochs = 2});
  // Compiled anew, parameters move to the devices of their stages.
  one.compile(context, options);
  CHECK(one.parameters().get("dense/kernel").storage()->device != one.parameters().get("conv2d/kernel").storage()->device);
  one.fit(data, {.batch_size = 20, .epochs = 3});
  CHECK(one.step() == 6);
  CHECK(all_close(first.predict(Tensor::full(DType::f32, {2, 28, 28}, 0.5)), second.predict(Tensor::full(DType::f32, {2, 28, 28}, 0.5)), 0,
                  0));
}

TEST_CASE("pipeline: an error of a stage names it and ends the others, and training goes on") {
  const Context context(devices_of("openblas", 3));
  const auto data = generate_digits({.count = 12});
  Batches batches(data, {.batch_size = 12, .workers = 0});
  batches.start(0);
  const Batch* const batch = batches.next();
  const Tensor x = batch->x().to_host();
  Tensor y = batch->y().to_host();
  Model model(deep_net()), one(deep_net());
  model.compile(context, pipelined(3, 4));
  one.compile(context, not_pipelined());
  for (int round = 0; round < 3; ++round) {
    const std::int64_t label = std::exchange(y.data<std::int64_t>()[7], 55);
    const std::string text = message_of([&] { model.train_batch(x, y); });
    CHECK_MESSAGE(contains(text, "stage 3 ('openblas:2'): "), text);
    CHECK_MESSAGE(contains(text, "55"), text);
    y.data<std::int64_t>()[7] = label;
    CHECK(std::abs(model.train_batch(x, y).logs[0].second - one.train_batch(x, y).logs[0].second) <= 1e-9);
  }
  std::stop_source stop;
  stop.request_stop();
  CHECK_ERROR_CONTAINS("cancelled before its first micro-batch", model.train_batch(x, y, {}, {.stop = stop.get_token()}));
  model.backward(x, y);
  one.backward(x, y);
  CHECK(all_close(model.gradient("dense/kernel"), one.gradient("dense/kernel"), 1e-9, 1e-12));
  CHECK_ERROR_CONTAINS("parallel.micro_batches: expected at most the number of samples of a batch, 3, got 4",
                       model.train_batch(x.narrow(0, 0, 3), y.narrow(0, 0, 3)));
  CHECK_ERROR_CONTAINS("parallel.micro_batches: expected at most the number of samples of a batch, 2, got 4",
                       model.fit(data, {.batch_size = 2}));
}

TEST_CASE("pipeline: what does not fit is refused by name") {
  const Context context(devices_of("openblas", 3));
  const auto refused = [&](auto change) {
    CompileOptions options = pipelined(2, 4);
    ModelDefinition definition = deep_net();
    definition.input_shape = {28, 28};
    change(options, definition);
    return message_of([&] { Model(definition).compile(context, options); });
  };
  using Definition = ModelDefinition;
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.devices.pop_back(); }), "at least 2 stages, got 1"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.devices[1] = "openblas:0"; }), "are both openblas:0"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.shard_optimizer = true; }),
                 "parallel.shard: not available with mode pipeline"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.shares = {1, 2}; }), "parallel.shares: not available"));
  CHECK(contains(refused([](CompileOptions& o, Definition&) { o.parallel.micro_batches = 0; }), "expected at least 1, got 0"));
  CHECK(contains(refused([](CompileOptions&, Definition& d) { d.layers[2].device = "openblas:2"; }),
                 "has the device 'openblas:2', which is not one of parallel.devices (openblas:0, openblas:1)"));
  CHECK(contains(refused([](CompileOptions&, Definition& d) { d.layers[0].device = "openblas:1"; }), "in the order of parallel.devices"));
  CHECK(
      contains(refused([](CompileOptions&, Definition& d) { d.layers[2].device = "openblas:0"; }), "no layer has the device 'openblas:1'"));
  CHECK(contains(refused([](CompileOptions&, Definition& d) { d.layers.resize(1); }),
                 "at least one layer for each of the 2 stages, the model has 1"));
  Config config = devices_of("openblas", 2);
  config.precision = Precision::mixed_float16;
  const Context f16(config);
  ModelDefinition net = small_convnet();
  net.dtype = DType::f32;
  Model model(net);
  model.compile(f16, pipelined(2, 2));
  CHECK_ERROR_CONTAINS("mode pipeline: precision mixed_float16 is not available for a model with running statistics ('batch_norm/",
                       model.train_batch(Tensor::zeros(DType::f32, {4, 28, 28}), Tensor::zeros(DType::i64, {4})));
  net.layers.erase(net.layers.begin() + 2);
  Model scaled(net);
  scaled.compile(f16, pipelined(2, 2));
  CHECK(scaled.train_batch(Tensor::full(DType::f32, {4, 28, 28}, 0.5), Tensor::zeros(DType::i64, {4})).step_taken);
  // A first stage that has nothing to learn, and so no backward pass; one that computes nothing at all.
  CompileOptions options = pipelined(3, 2);
  options.frozen = {"conv2d/*"};
  ModelDefinition part = small_convnet();
  part.layers = {layers::Dropout{0.0}, part.layers[0], part.layers[1], layers::Flatten{}, layers::Dense{10, Activation::softmax}};
  part.layers[1].device = "openblas:1";
  part.layers[4].device = "openblas:2";
  Model partly(part);
  partly.compile(context, options);
  const Tensor x = Tensor::full(DType::f64, {4, 28, 28}, 0.5), y = Tensor::zeros(DType::i64, {4});
  const double loss = partly.train_batch(x, y).logs[0].second;
  CHECK(partly.train_batch(x, y).logs[0].second < loss);
}

}  // namespace
}  // namespace tenon::test
