// SPDX-License-Identifier: Apache-2.0
// Training on a device that records: replayed steps match executed steps bit for bit.
#include "reel_device.h"

namespace tenon::test {
namespace {

struct Trained {
  std::vector<double> losses;  ///< of each epoch, of training and of validation
  std::vector<float> weights;
};

/// Two epochs of 10 batches of Adam with a schedule and dropout, then validation on 4 batches: values that change each step are in device
/// memory.
Trained train(Capture capture, int workers, std::int64_t accumulate = 1) {
  Config config = test_config();
  config.capture = capture;
  config.seed = 7;
  const Context context = with_reel(config);
  Model model({layers::Flatten{}, layers::Dense{12, Activation::relu}, layers::Dropout{0.25}, layers::Dense{10, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.optimizer.schedule.kind = Schedule::Kind::exponential;
  options.optimizer.schedule.gamma = 0.9;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  GeneratedOptions digits{.count = 200};
  FitOptions fit{.batch_size = 20, .epochs = 2, .workers = workers, .accumulate = accumulate};
  GeneratedOptions others = digits;
  others.count = 80;
  others.split = Split::test;
  fit.validation = generate_digits(others);
  Trained result;
  for (const EpochLogs& epoch : model.fit(generate_digits(digits), fit)) {
    for (const auto& [name, value] : epoch.logs) result.losses.push_back(value);
  }
  for (const auto& [name, tensor] : model.parameters().all()) {
    const std::vector<float> values = floats(tensor);
    result.weights.insert(result.weights.end(), values.begin(), values.end());
  }
  return result;
}

TEST_CASE("replay: training steps are replayed from the third on, with the same bits") {
  for (const int workers : {0, 1}) {
    CAPTURE(workers);
    const Trained executed = train(Capture::off, workers);
    CHECK(Reel::recorded == 0);
    const Trained replayed = train(Capture::automatic, workers);
    // A recording for each buffer that batches come in: one, or two where a worker reads them and they are copied ahead, as those of
    // validation are. Of the four of each validation both are used twice before the parameters have changed and they are recorded.
    const int buffers = workers == 0 ? 1 : 2;
    CHECK(Reel::recorded == buffers + 2);
    CHECK(Reel::replayed == 20 - 2 * buffers + 8 - 4);
    CHECK(executed.losses == replayed.losses);
    CHECK(executed.weights == replayed.weights);
  }
}

TEST_CASE("replay: with gradients accumulated over batches the programs of a batch and of a step are replayed") {
  const Trained executed = train(Capture::off, 0, 2);
  const Trained replayed = train(Capture::automatic, 0, 2);
  CHECK(Reel::recorded == 5);  // the first batch, those that follow it, the step, validation twice
  CHECK(executed.losses == replayed.losses);
  CHECK(executed.weights == replayed.weights);
}

TEST_CASE("replay: steps of data parallelism are replayed between their sums, sharded or not, with the same bits") {
  const auto data = generate_digits({.count = 120});
  const auto train_ranks = [&](Capture capture, bool sharded) {
    Config config = test_config();
    config.capture = capture;
    config.seed = 7;
    const Context context = with_reel(config);
    Model model({layers::Flatten{}, layers::Dense{12, Activation::relu}, layers::Dense{10, Activation::softmax}});
    CompileOptions options;
    options.loss.loss = Loss::sparse_categorical_crossentropy;
    options.parallel = {.devices = {"reel:0", "reference:0"}, .bucket_mb = 0.0005, .shard_optimizer = sharded};
    model.compile(context, options);
    std::pair<History, std::vector<float>> trained;
    trained.first = model.fit(data, {.batch_size = 20, .epochs = 2, .workers = 0});
    trained.second = floats(model.parameters().get("dense/kernel").to_host());
    return trained;
  };
  for (const bool sharded : {false, true}) {
    CAPTURE(sharded);
    const auto executed = train_ranks(Capture::off, sharded);
    CHECK(Reel::recorded == 0);
    const auto replayed = train_ranks(Capture::automatic, sharded);
    CHECK(Reel::recorded >= 2);  // at least a piece before and one after the sum
    CHECK(Reel::replayed == 10 * Reel::recorded);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) CHECK(executed.first[epoch].logs == replayed.first[epoch].logs);
    CHECK(executed.second == replayed.second);
  }
}

}  // namespace
}  // namespace tenon::test
