// SPDX-License-Identifier: Apache-2.0
// tenon bench pipeline - training with slow data loading: serial, from a cache in memory, prefetched by a worker thread and, for devices
// with their own memory, copied asynchronously as fit does. A CPU device gets one thread fewer than the total, so that the worker has a
// processor.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/data.h>
#include <tenon/model.h>
#include <tenon/trace.h>

#include "bench/bar_chart.h"
#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "exec/device_state.h"
#include "text/counted.h"
#include "train/datasets/feed.h"

namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// Digits with a simulated decoding cost: a number of passes of a five-point mean.
class Decoded final : public Dataset {
 public:
  Decoded(std::shared_ptr<const Dataset> from, int passes)
      : Dataset(from->inputs(), from->targets()), from_(std::move(from)), passes_(passes) {}
  const std::string& name() const override { return from_->name(); }
  std::int64_t size() const override { return from_->size(); }
  std::optional<std::int64_t> num_classes() const override { return from_->num_classes(); }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    from_->gather(indices, inputs, targets);
    const Shape& shape = x_type().shape;
    const std::int64_t height = shape[0], width = shape[1];
    for (std::size_t i = 0; i < indices.size(); ++i) {
      float* const image = inputs[0].data<float>() + static_cast<std::int64_t>(i) * height * width;
      for (int pass = 0; pass < passes_; ++pass) blur(image, height, width);
    }
  }

 private:
  static void blur(float* image, std::int64_t height, std::int64_t width) {
    for (std::int64_t r = 1; r + 1 < height; ++r) {
      for (std::int64_t c = 1; c + 1 < width; ++c) {
        float* const at = image + r * width + c;
        *at = (at[-width] + at[-1] + at[0] + at[1] + at[width]) * 0.2F;
      }
    }
  }

  std::shared_ptr<const Dataset> from_;
  int passes_;
};

Model make_model(const Context& context) {
  Model model({layers::Flatten{}, layers::Dense{300, Activation::relu}, layers::Dense{100, Activation::relu},
               layers::Dense{10, Activation::softmax}});
  LossDefinition loss;
  loss.loss = Loss::sparse_categorical_crossentropy;
  model.compile(context, {.optimizer = {}, .loss = loss, .metrics = {}});
  return model;
}

/// The time of the kernels of a step on the device, without launches, copies and waits.
double kernels_ns(const Context& context, Model& model, const Tensor& x, const Tensor& y) {
  std::vector<double> sums;
  for (int i = 0; i < 5; ++i) {
    const Trace trace(context);
    model.train_batch(x, y);
    double sum = 0;
    for (const Trace::Kernel& kernel : trace.kernels()) sum += static_cast<double>(kernel.duration_ns);
    sums.push_back(sum);
  }
  return median(sums);
}

}  // namespace

std::unique_ptr<Report> pipeline(const Options& options) {
  const int device_threads = std::max(1, options.threads - 1);
  const Context context = options.make_context(device_threads);
  const Device device = context.default_device();
  const bool copies = !device.state()->host_addressable();
  auto report = std::make_unique<Report>("tenon bench pipeline", describe_machine(context, options.threads));
  const std::int64_t batch = 100;
  const std::int64_t steps = options.tiny ? 3 : 200;
  const int runs = options.runs > 0 ? options.runs : options.tiny ? 2 : 11;
  const std::shared_ptr<const Dataset> digits = generate_digits({.count = batch * steps});

  Model model = make_model(context);
  Tensor x = Tensor::empty(DType::f32, {batch, 28, 28});
  Tensor y = Tensor::empty(DType::i64, {batch});
  std::vector<std::int64_t> first(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::int64_t>(i);
  const auto seconds_of = [&](const std::function<void()>& body) {
    std::vector<double> ns;
    for (int i = 0; i < 11; ++i) {
      const auto begin = Clock::now();
      body();
      ns.push_back(ns_since(begin));
    }
    return median(ns);
  };
  digits->gather(first, {&x, 1}, {&y, 1});
  for (int i = 0; i < 3; ++i) model.train_batch(x, y);
  const double train_ns = seconds_of([&] { model.train_batch(x, y); });

  // Choose the work so that loading takes about as long as training, where prefetching gains most.
  int passes = 1;
  const auto load_ns = [&](int p) {
    const Decoded decoded(digits, p);
    return seconds_of([&] { decoded.gather(first, {&x, 1}, {&y, 1}); });
  };
  if (!options.tiny) passes = std::max(1, static_cast<int>(std::lround(train_ns / std::max(load_ns(8) / 8, 1.0))));
  const auto decoded = std::make_shared<Decoded>(digits, passes);

  // Decode once and keep the result, as `cache: ram` does.
  Tensor all_x = Tensor::empty(DType::f32, {batch * steps, 28, 28});
  Tensor all_y = Tensor::empty(DType::i64, {batch * steps});
  std::vector<std::int64_t> all(static_cast<std::size_t>(batch * steps));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  decoded->gather(all, {&all_x, 1}, {&all_y, 1});
  ArrayOptions kept;
  kept.name = "cached";
  kept.num_classes = 10;
  const auto cached = std::make_shared<ArrayDataset>(all_x, all_y, kept);

  struct Strategy {
    const char* name;
    std::shared_ptr<const Dataset> data;
    int workers;
    bool copies_ahead = false;
    bool fits = false;  ///< by Model::fit, which submits the next step before it reads the results of one
    Samples step = {}, wait = {};
  };
  std::vector<Strategy> strategies{{"serial", decoded, 0}, {"RAM cache", cached, 0}, {"prefetch", decoded, 1}};
  if (copies) strategies.push_back({"prefetch + async copy", decoded, 1, true});
  if (copies) strategies.push_back({"fit", decoded, 1, true, true});
  Samples load_only, train_only;
  // On the device, so that a step has no copy.
  const Tensor x_device = copies ? x.to(device) : x, y_device = copies ? y.to(device) : y;
  for (int i = 0; i < 3; ++i) model.train_batch(x_device, y_device);
  const double busy = std::min(kernels_ns(context, model, x_device, y_device), seconds_of([&] { model.train_batch(x_device, y_device); }));
  train::FeedBuffers buffers;
  for (int run = 0; run < runs; ++run) {
    say(fmt::format("pipeline: run {} of {}", run + 1, runs));
    for (Strategy& strategy : strategies) {
      if (strategy.fits) {
        const double cpu = cpu_time_ns();
        const EpochLogs logs = model.fit(strategy.data, {.batch_size = batch, .epochs = model.epochs_done() + 1, .workers = 1}).back();
        strategy.step.ns.push_back(logs.seconds * 1e9 / static_cast<double>(steps));
        strategy.step.cpu_ns.push_back((cpu_time_ns() - cpu) / static_cast<double>(steps));
        continue;
      }
      train::FeedOptions feed;
      feed.batches.batch_size = batch;
      feed.batches.seed = 1;
      feed.batches.workers = strategy.workers;
      if (strategy.copies_ahead) feed.device = device;
      train::Feed batches(strategy.data, feed, buffers);
      batches.start(static_cast<std::uint64_t>(run));
      double waited = 0;
      const double cpu = cpu_time_ns();
      const auto begin = Clock::now();
      for (;;) {
        const auto wait_begin = Clock::now();
        const Batch* next = batches.next();
        waited += ns_since(wait_begin);
        if (next == nullptr) break;
        model.train_batch(next->x(), next->y());
      }
      const auto per_step = static_cast<double>(steps);
      strategy.step.ns.push_back(ns_since(begin) / per_step);
      strategy.step.cpu_ns.push_back((cpu_time_ns() - cpu) / per_step);
      strategy.wait.ns.push_back(waited / per_step);
    }
    // In the same turns, loading and training by themselves.
    auto begin = Clock::now();
    decoded->gather(first, {&x, 1}, {&y, 1});
    load_only.ns.push_back(ns_since(begin));
    begin = Clock::now();
    model.train_batch(x_device, y_device);
    train_only.ns.push_back(ns_since(begin));
  }
  const double load = median(load_only.ns), train = median(train_only.ns);
  const double floor = std::max(load, train);
  load_only.cpu_ns = load_only.ns, train_only.cpu_ns = train_only.ns;
  report->add({.name = "load only", .samples = std::move(load_only)});
  report->add({.name = "train only", .samples = std::move(train_only)});
  BarGroup chart{"us per step", {}};
  for (Strategy& strategy : strategies) {
    Entry entry{.name = strategy.name, .samples = std::move(strategy.step)};
    const double idle = std::max(0.0, 100 * (1 - busy / entry.median_ns()));
    entry.extra.emplace_back("times_max_of_both", entry.median_ns() / floor);
    if (!strategy.wait.ns.empty()) entry.extra.emplace_back("waited_percent", 100 * median(strategy.wait.ns) / entry.median_ns());
    entry.extra.emplace_back("device_idle_percent", idle);
    chart.bars.push_back({strategy.name, entry.median_ns() / 1e3, fmt::format("device idle {:.0f} %", idle)});
    report->add(std::move(entry));
  }
  report->note(
      fmt::format("a batch of {} digits, decoded with {} passes of a mean over each image; {} steps per sample; {} for the "
                  "device, one for the worker",
                  batch, passes, steps, counted(device_threads, "thread")));
  report->note(
      "times_max_of_both: a step over the longer of load only and train only; waited_percent: share of the step spent waiting for data");
  report->note(fmt::format("device_idle_percent: share of the step beyond its kernels, {}, measured separately", format_duration(busy)));
  report->note(fmt::format("target: {} at most 1.05", copies ? "prefetch + async copy" : "prefetch"));
  if (!copies) report->note("prefetch + async copy: not run, a CPU needs no copy");
  write_chart(options.html, "tenon bench pipeline, " + device.name(), {chart});
  return report;
}

}  // namespace tenon::bench
