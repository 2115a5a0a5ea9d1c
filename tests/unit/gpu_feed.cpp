// SPDX-License-Identifier: Apache-2.0
// Training on the GPU from prefetched batches.
#include <chrono>
#include <cstring>
#include <thread>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::gpu_config;

constexpr std::int64_t batch = 50, count = 12;  // plus one smaller batch

struct Trained {
  std::vector<double> losses;
  std::vector<float> weights;
  std::uint64_t records = 0, replays = 0;
};

Model make_model(const Context& context) {
  Model model({layers::Flatten{}, layers::Dense{32, Activation::relu}, layers::Dropout{0.25}, layers::Dense{10, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  model.build({28, 28});
  return model;
}

Trained train(const FitOptions& requested, Callback* watcher = nullptr) {
  Config config = gpu_config();
  config.seed = 3;
  const Context context(config);
  Model model = make_model(context);
  FitOptions options = requested;
  options.batch_size = batch;
  options.epochs = 2;
  if (watcher != nullptr) options.callbacks = {watcher};
  GeneratedOptions others{.count = 120, .split = Split::test};
  options.validation = generate_digits(others);
  Trained result;
  for (const EpochLogs& epoch : model.fit(generate_digits({.count = batch * count + 7}), options)) {
    for (const auto& [name, value] : epoch.logs) result.losses.push_back(value);
  }
  for (const auto& [name, tensor] : model.parameters().all()) {
    const std::vector<float> values = test::floats(tensor);
    result.weights.insert(result.weights.end(), values.begin(), values.end());
  }
  const PlacementReport& placement = model.program_of_step(batch).placement();
  result.records = placement.records;
  result.replays = placement.replays;
  return result;
}

FitOptions read_by(int workers, bool pinned = true) {
  FitOptions options;
  options.workers = workers;
  options.pinned = pinned;
  return options;
}

TEST_CASE("gpu: prefetched batches train as those read one by one, bit for bit, and both buffers are replayed") {
  const Trained serial = train(read_by(0));
  CHECK(serial.records == 1);
  CHECK(serial.replays == 2 * count - 2);
  for (const int workers : {1, 3}) {
    for (const bool pinned : {true, false}) {
      CAPTURE(workers);
      CAPTURE(pinned);
      const Trained ahead = train(read_by(workers, pinned));
      CHECK(ahead.losses == serial.losses);
      CHECK(ahead.weights == serial.weights);
      CHECK(ahead.records == 2);
      CHECK(ahead.replays == 2 * count - 4);
    }
  }
}

TEST_CASE("gpu: the next batch is being copied before fit requests it") {
  /// At the end of a batch, before the next is requested, its copy has been submitted to the device.
  struct Watcher final : Callback {
    void train_begin(std::int64_t, std::int64_t) override { before = bytes(); }
    void batch_end(std::int64_t index, const Logs&, const BatchResult&) override {
      if (model().epochs_done() > 0 || index + 1 >= count) return;
      const std::uint64_t requested = static_cast<std::uint64_t>(index + 2) * batch * 28 * 28 * sizeof(float);
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (bytes() - before < requested && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      CHECK(bytes() - before >= requested);
    }
    std::uint64_t bytes() const { return context->profile().host_to_device.size_bytes; }
    const Context* context = nullptr;
    std::uint64_t before = 0;
  };
  const Context context(gpu_config());
  Model model = make_model(context);
  Watcher watcher;
  watcher.context = &context;
  FitOptions options = read_by(1);
  options.batch_size = batch;
  options.callbacks = {&watcher};
  model.fit(generate_digits({.count = batch * count}), options);
  CHECK(model.step() == count);
}

TEST_CASE("gpu: fit from prefetched batches may be left early, and resumes") {
  struct Leave final : Callback {
    void batch_end(std::int64_t index, const Logs&, const BatchResult&) override {
      if (index == at) throw Error("enough");
    }
    std::int64_t at = 0;
  };
  const Context context(gpu_config());
  Model model = make_model(context);
  const auto data = generate_digits({.count = batch * count});
  FitOptions options = read_by(2);
  options.batch_size = batch;
  for (Leave leave; leave.at < 5; ++leave.at) {
    options.callbacks = {&leave};
    CHECK(test::contains(test::message_of([&] { model.fit(data, options); }), "enough"));
  }
  options.callbacks.clear();
  model.fit(data, options);
  CHECK(model.epochs_done() == 1);
}

}  // namespace
}  // namespace tenon
