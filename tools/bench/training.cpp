// SPDX-License-Identifier: Apache-2.0
// tenon bench mnist_mlp, fashion_mnist - epochs of Model::fit on generated digits, including data loading and metrics, compared with
// the same training in PyTorch (peers/mlp_torch.py). The first epoch is not timed; half of our epochs are timed before the peer's, half
// after.
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include <tenon/model.h>

#include "bench/benchmarks.h"
#include "bench/child.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "bench/torch_peer.h"
#include "cli/memory_roofs.h"

namespace tenon::bench {
namespace {

struct Training {
  const char* name;
  std::vector<std::int64_t> sizes;  ///< layer sizes, starting with the input
  bool bias = false;
  OptimizerDefinition optimizer;
  std::int64_t batch = 0;
  double target_seconds = 0;

  /// Operations of the matrix products of one epoch: forward, gradients of weights and, except for the first layer, gradients of inputs.
  double flops(std::int64_t samples) const {
    double products = 0;
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      products += static_cast<double>(sizes[i] * sizes[i + 1]) * (i == 0 ? 2 : 3);
    }
    return 2 * products * static_cast<double>(samples);
  }
};

Model make_model(const Training& training, const Context& context) {
  const layers::Weights weights{.bias = training.bias, .kernel_initializer = Initializer{.kind = Initializer::Kind::glorot_normal}};
  std::vector<LayerDefinition> list{layers::Flatten{}};
  for (std::size_t i = 1; i < training.sizes.size(); ++i) {
    const bool last = i + 1 == training.sizes.size();
    list.push_back(layers::Dense{training.sizes[i], last ? Activation::softmax : Activation::relu, weights});
  }
  Model model(std::move(list));
  LossDefinition loss;
  loss.loss = Loss::sparse_categorical_crossentropy;
  model.compile(context, {.optimizer = training.optimizer, .loss = loss, .metrics = {Metric::accuracy}});
  return model;
}

/// Fills in peer and peer_samples, or peer_absent.
void run_peer(const Training& training, const Options& options, const Context& context, std::int64_t samples, int epochs, Entry& entry) {
  const std::string script = peer_script("mlp_torch.py");
  const std::string sizes = fmt::format("{}", fmt::join(training.sizes, ","));
  const Variant variant{"", context, "", context.config().precision};
  const Peer peer = run_torch_peer(
      {options.python, script, "--sizes", sizes, "--bias", training.bias ? "1" : "0", "--optimizer",
       training.optimizer.kind == OptimizerDefinition::Kind::adam ? "adam" : "rmsprop", "--samples", std::to_string(samples), "--batch",
       std::to_string(training.batch), "--epochs", std::to_string(epochs), "--threads", std::to_string(options.threads)},
      variant);
  set_peer(entry, peer);
}

/// Microseconds of so many single steps, in increasing order. The values of the batch do not matter.
std::vector<double> step_times_us(Model& model, std::int64_t batch, std::int64_t steps) {
  const Tensor x = Tensor::zeros(DType::f32, {batch, 28, 28}), y = Tensor::zeros(DType::i32, {batch});
  model.train_batch(x, y);
  std::vector<double> times;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    model.train_batch(x, y);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(times);
  return times;
}

std::unique_ptr<Report> run_training(const Training& training, const Options& options) {
  const Context context = options.make_context(options.threads);
  auto machine = describe_machine(context, options.threads);
  const std::int64_t steps = options.tiny ? 2 : 60000 / training.batch;
  const std::int64_t samples = steps * training.batch;
  const int runs = options.runs > 0 ? options.runs : 10;
  const auto data = generate_digits({.count = samples});
  Model model = make_model(training, context);
  Entry entry{.name = fmt::format("{}, batch {}, {} steps", training.name, training.batch, steps)};

  FitOptions fit;
  fit.batch_size = training.batch;
  const auto epochs = [&](int count) {
    for (int i = 0; i < count; ++i) {
      fit.epochs = model.epochs_done() + 1;
      const double cpu_begin = cpu_time_ns();
      const EpochLogs epoch = model.fit(data, fit).back();
      say(fmt::format("{}: epoch {} {:.3f} s, loss {:.4f}", training.name, epoch.epoch, epoch.seconds, epoch.logs[0].second));
      entry.samples.ns.push_back(epoch.seconds * 1e9);
      entry.samples.cpu_ns.push_back(cpu_time_ns() - cpu_begin);
    }
  };
  epochs(1);
  entry.samples.ns.clear(), entry.samples.cpu_ns.clear();
  epochs((runs + 1) / 2);
  run_peer(training, options, context, samples, std::max(1, runs / 2), entry);
  if (runs > 1) epochs(runs / 2);

  const double seconds = entry.median_ns() / 1e9;
  const double gflops = training.flops(samples) / 1e9 / seconds;
  entry.extra.emplace_back("seconds_per_epoch", seconds);
  if (training.target_seconds > 0) entry.extra.emplace_back("target_seconds", training.target_seconds);
  entry.extra.emplace_back("images_per_s", static_cast<double>(samples) / seconds);
  entry.extra.emplace_back("gflop_per_s", gflops);
  entry.extra.emplace_back("us_per_step", seconds * 1e6 / static_cast<double>(steps));
  const std::vector<double> step_us = step_times_us(model, training.batch, steps);
  entry.extra.emplace_back("step_p50_us", step_us[step_us.size() / 2]);
  entry.extra.emplace_back("step_p99_us", step_us[step_us.size() * 99 / 100]);
  entry.extra.emplace_back("peak_rss_mb", resident_memory().peak);  // before the roofs are measured, which allocate memory
  entry.extra.emplace_back("device_peak_mb", static_cast<double>(context.default_device().peak_size_bytes()) / 1e6);

  if (context.default_device().info().kind == DeviceKind::cpu) {
    const std::map<DType, double> peaks = add_peaks(machine, options.threads);
    const auto peak = peaks.find(context.config().precision == Precision::mixed_bfloat16 ? DType::bf16 : DType::f32);
    if (peak != peaks.end()) entry.percent_of_roof = 100 * gflops / peak->second;
    if (!options.tiny) machine["roofs"]["memory_gb_per_s"] = std::round(cli::memory_roofs(options.threads).peak() * 10) / 10;
  }
  auto report = std::make_unique<Report>(fmt::format("tenon bench {}", training.name), std::move(machine));
  if (!entry.peer.empty()) report->note("peer: " + entry.peer);
  report->add(std::move(entry));
  report->note(fmt::format("{:.1f} GFLOP of matrix products per epoch; % of roof: of the peak of fused multiply-adds",
                           training.flops(samples) / 1e9));
  return report;
}

}  // namespace

std::unique_ptr<Report> mnist_mlp(const Options& options) {
  OptimizerDefinition rmsprop;
  rmsprop.kind = OptimizerDefinition::Kind::rmsprop;
  rmsprop.rho = 0.999;
  auto report = run_training({"mnist_mlp", {784, 300, 100, 10}, false, rmsprop, 100, 1.0}, options);
  report->note("targets: 1.0 s per epoch on 2 cores, ratio at least 4, peak_rss_mb below 400");
  return report;
}

std::unique_ptr<Report> fashion_mnist(const Options& options) {
  OptimizerDefinition adam;
  auto report = run_training({"fashion_mnist", {784, 128, 10}, true, adam, 32, 1.0}, options);
  report->note("target: 1.0 s per epoch on 2 cores");
  return report;
}

}  // namespace tenon::bench
