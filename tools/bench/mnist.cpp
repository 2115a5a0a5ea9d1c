// SPDX-License-Identifier: Apache-2.0
// tenon bench mnist - the MLP of models/mnist_mlp, or the convnet, on generated digits: epochs of Model::fit with data loading and metrics,
// and inference from host memory to host memory, on several devices in turns.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/model.h>
#include <tenon/program.h>
#include <tenon/trace.h>
#include <tenon/train_definition.h>

#include "bench/bar_chart.h"
#include "bench/benchmarks.h"
#include "bench/comparison.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "bench/variants.h"

namespace tenon::bench {
namespace {

/// The sum over kernels of the lower bound of their times; empty without roofs.
template <class Kernels>
std::optional<double> min_ns(const Kernels& kernels, const Roofs& roofs) {
  double sum = 0;
  for (const auto& kernel : kernels) {
    const std::optional<double> kernel_ns = roofs.min_ns(static_cast<double>(kernel.flops), static_cast<double>(kernel.size_bytes));
    if (!kernel_ns) return std::nullopt;
    sum += *kernel_ns;
  }
  return sum;
}

/// A model on one contender, and the times of its epochs.
struct Trainee {
  explicit Trainee(const TrainDefinition& definition, const Contender& on) : contender(&on), model(definition.model) {
    model.compile(on.variant.context, {.optimizer = definition.optimizer, .loss = definition.loss, .metrics = definition.metrics});
  }
  const Contender* contender;
  Model model;
  Samples seconds = {};
};

std::optional<double> min_ns_of_step(Trainee& trainee, const Dataset& data, std::int64_t batch) {
  Tensor x = Tensor::empty(data.x_type().dtype, {batch, 28, 28}), y = Tensor::empty(data.y_type().dtype, {batch});
  std::vector<std::int64_t> first(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::int64_t>(i);
  data.gather(first, x, y);
  const Trace trace(trainee.contender->variant.context);
  trainee.model.train_batch(x, y);
  return min_ns(trace.kernels(), trainee.contender->roofs);
}

void bench_training(const TrainDefinition& definition, const Options& options, const std::vector<Contender>& contenders,
                    Comparison& comparison, Report& report, std::vector<BarGroup>& out_bars) {
  const std::int64_t batch = definition.fit.batch_size;
  const std::int64_t samples = options.tiny ? 2 * batch : 60000;
  const int epochs = options.runs > 0 ? options.runs : options.tiny ? 2 : 10;
  const auto data = generate_digits({.count = samples});
  std::vector<Trainee> trainees;
  trainees.reserve(contenders.size());
  for (const Contender& contender : contenders) trainees.emplace_back(definition, contender);
  std::vector<std::vector<std::string>> rows;
  FitOptions fit;
  fit.batch_size = batch;
  for (int epoch = 0; epoch <= epochs; ++epoch) {  // the first is reported but not counted, because programs are compiled in it
    for (Trainee& trainee : trainees) {
      fit.epochs = trainee.model.epochs_done() + 1;
      const double cpu = cpu_time_ns();
      const EpochLogs logs = trainee.model.fit(data, fit).back();
      if (epoch > 0) {
        trainee.seconds.ns.push_back(logs.seconds * 1e9);
        trainee.seconds.cpu_ns.push_back(cpu_time_ns() - cpu);
      }
      std::vector<std::string> row{std::to_string(epoch + 1), trainee.contender->variant.name, fmt::format("{:.4g}", logs.seconds),
                                   fmt::format("{:.0f}", static_cast<double>(samples) / logs.seconds)};
      std::string text;
      for (const auto& [key, value] : logs.logs) text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", key, value);
      row.push_back(text);
      say(fmt::format("epoch {} on {}: {} s, {}", row[0], row[1], row[2], text));
      rows.push_back(std::move(row));
    }
  }
  report.table("epochs", {"epoch", "device", "s", "images/s", "mean over the epoch"}, std::move(rows), true);
  const auto steps = static_cast<double>((samples + batch - 1) / batch);
  std::vector<Entry> entries;
  BarGroup bars{fmt::format("{}, train, batch {}: images/s", definition.model.name, batch), {}};
  for (Trainee& trainee : trainees) {
    const Variant& variant = trainee.contender->variant;
    Entry entry{.name = fmt::format("{} train batch {}, epoch{}", definition.model.name, batch, suffix_of(variant, contenders.size())),
                .samples = std::move(trainee.seconds)};
    entry.extra.emplace_back("images_per_s", static_cast<double>(samples) / entry.median_ns() * 1e9);
    entry.extra.emplace_back("us_per_step", entry.median_ns() / 1e3 / steps);
    if (const auto kernel_ns = min_ns_of_step(trainee, *data, batch)) entry.percent_of_roof = 100 * *kernel_ns * steps / entry.median_ns();
    bars.bars.push_back({variant.name, static_cast<double>(samples) / entry.median_ns() * 1e9});
    entries.push_back(std::move(entry));
  }
  comparison.add(definition.model.name, "train", batch, entries);
  for (Entry& entry : entries) report.add(std::move(entry));
  out_bars.push_back(std::move(bars));
}

void bench_inference(const TrainDefinition& definition, const Options& options, const std::vector<Contender>& contenders,
                     Comparison& comparison, Report& report, std::vector<BarGroup>& out_bars) {
  std::vector<std::int64_t> batches = options.batches;
  if (batches.empty()) batches = options.tiny ? std::vector<std::int64_t>{1, 4} : std::vector<std::int64_t>{1, 100, 1024};
  std::vector<Trainee> trainees;
  trainees.reserve(contenders.size());
  for (const Contender& contender : contenders) {
    trainees.emplace_back(definition, contender);
    trainees.back().model.build({28, 28});
  }
  for (const std::int64_t batch : batches) {
    const std::string name = fmt::format("{} infer batch {}", definition.model.name, batch);
    say(name);
    Tensor x = Tensor::empty(DType::f32, {batch, 28, 28}), y = Tensor::empty(DType::i64, {batch});
    std::vector<std::int64_t> all(static_cast<std::size_t>(batch));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    generate_digits({.count = batch})->gather(all, x, y);
    const std::vector<Tensor> inputs{x};
    std::vector<Program> programs;
    programs.reserve(trainees.size());
    std::vector<Body> bodies;
    const auto predict = [&inputs](Program& program) { static_cast<void>(program.run(inputs)[0].to_host()); };
    for (Trainee& trainee : trainees) {
      programs.push_back(trainee.model.freeze(batch));
      bodies.emplace_back(repeat([&predict, &program = programs.back()] { predict(program); }));
    }
    Protocol protocol = options.protocol();
    std::vector<Samples> samples = measure(bodies, protocol);
    std::vector<Entry> entries;
    BarGroup bars{fmt::format("{}: images/s", name), {}};
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const Contender& contender = contenders[i];
      Entry entry{.name = name + suffix_of(contender.variant, contenders.size()), .samples = std::move(samples[i])};
      const Latency latency = latency_of([&] { predict(programs[i]); }, options.tiny ? 5 : batch == 1 ? 2000 : 200);
      entry.extra.emplace_back("p50_ms", latency.p50_ms);
      entry.extra.emplace_back("p99_ms", latency.p99_ms);
      entry.extra.emplace_back("images_per_s", static_cast<double>(batch) / entry.median_ns() * 1e9);
      programs[i].enable_profile(true);
      programs[i].run(inputs);
      if (const auto kernel_ns = min_ns(programs[i].profile(), contender.roofs))
        entry.percent_of_roof = 100 * *kernel_ns / entry.median_ns();
      bars.bars.push_back({contender.variant.name, static_cast<double>(batch) / entry.median_ns() * 1e9,
                           fmt::format("p50 {:.3g} ms, p99 {:.3g} ms", latency.p50_ms, latency.p99_ms)});
      entries.push_back(std::move(entry));
    }
    comparison.add(definition.model.name, "infer", batch, entries);
    for (Entry& entry : entries) report.add(std::move(entry));
    out_bars.push_back(std::move(bars));
  }
}

}  // namespace

std::unique_ptr<Report> mnist(const Options& options) {
  const std::string net = options.net.empty() ? "mnist_mlp" : options.net;
  if (net != "mnist_mlp" && net != "convnet") throw Error(fmt::format("--net {}: expected mnist_mlp or convnet", net));
  for (const std::string& phase : options.phases) {
    if (phase != "infer" && phase != "train")
      throw Error(fmt::format("--phase {}: expected infer, train or both, as in infer,train", phase));
  }
  TrainDefinition definition = load_definition(options.models + "/../" + net + "/train.yaml");
  if (options.tiny) definition.fit.batch_size = 4;
  nlohmann::ordered_json machine;
  const std::vector<Contender> contenders = make_contenders(options, machine);
  auto report = std::make_unique<Report>("tenon bench mnist", std::move(machine));
  Comparison comparison(contenders);
  std::vector<BarGroup> bars;
  for (const std::string& phase : options.phases) {
    (phase == "train" ? bench_training : bench_inference)(definition, options, contenders, comparison, *report, bars);
  }
  comparison.add_to(*report);
  report->note("train: epochs of fit with data loading and metrics; infer: from images in host memory to scores in host memory");
  report->note("p50, p99: runs timed one by one; % of roof: sum over kernels of max(work / peak, bytes / bandwidth), over the median");
  write_chart(options.html, "tenon bench mnist", bars);
  return report;
}

}  // namespace tenon::bench
