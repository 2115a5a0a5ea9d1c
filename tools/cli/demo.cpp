// SPDX-License-Identifier: Apache-2.0
// tenon demo: trains one small classifier on every healthy backend and compares them.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>
#include <set>
#include <vector>

#include <tenon/tenon.h>

#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "text/counted.h"
#include "train/log/progress.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string data;
  std::int64_t epochs = 3;
};

struct Result {
  std::string device, product;
  double accuracy, loss, train_seconds, infer_seconds;
};

void run_demo(const Arguments& arguments) {
  const Context context(arguments.common.resolve(), {}, arguments.common.plugins);
  std::shared_ptr<const ArrayDataset> train_set, test_set;
  if (arguments.data.empty()) {
    train_set = generate_digits({.count = 12000});
    test_set = generate_digits({.count = 2000, .split = Split::test});
    print("Data: 12000 generated digits of 28x28, 2000 for testing (--data DIR uses MNIST or Fashion-MNIST files instead)\n");
  } else {
    train_set = load_mnist(arguments.data, Split::train);
    test_set = load_mnist(arguments.data, Split::test);
    print(fmt::format("Data: {}, {} samples, {} for testing\n", arguments.data, train_set->size(), test_set->size()));
  }
  print(fmt::format("Model: flatten, dense 64 relu, dense 10 softmax; adam, batch 32, {}\n", counted(arguments.epochs, "epoch")));

  std::vector<Result> results;
  std::set<std::string> seen;
  for (const DeviceInfo& info : context.devices()) {
    if (!seen.insert(info.backend).second) continue;  // one device per backend
    Config config = context.config();
    config.device = info.name;
    const Context device_context(config, {}, arguments.common.plugins);
    print(fmt::format("\n{} ({})\n", info.name, info.description));
    Model model({layers::Flatten{}, layers::Dense{64, Activation::relu}, layers::Dense{10, Activation::softmax}});
    CompileOptions compile;
    compile.loss.loss = Loss::sparse_categorical_crossentropy;
    compile.metrics = {Metric::accuracy};
    model.compile(device_context, std::move(compile));
    train::ProgressBar bar({.verbose = 1, .terminal = false, .write = print, .clock = nullptr, .colour = false, .columns = nullptr});
    FitOptions options;
    options.epochs = arguments.epochs;
    options.callbacks = {&bar};
    double train_seconds = 0;
    for (const EpochLogs& epoch : model.fit(train_set, options)) train_seconds += epoch.seconds;
    const auto begin = std::chrono::steady_clock::now();
    const Logs test = model.evaluate(test_set, 100);
    const double infer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    results.push_back({info.name, info.product, test[1].second, test[0].second, train_seconds, infer_seconds});
  }

  const double slowest = std::max_element(results.begin(), results.end(), [](const Result& a, const Result& b) {
                           return a.train_seconds < b.train_seconds;
                         })->train_seconds;
  print(fmt::format("\n{:<14} {:>9} {:>10} {:>10} {:>12} {:>9}  {}\n", "device", "accuracy", "test loss", "training", "inference",
                    "speed-up", "processor"));
  for (const Result& r : results) {
    print(fmt::format("{:<14} {:>8.2f}% {:>10.4f} {:>8.2f} s {:>9.0f} /s {:>8.1f}x  {}\n", r.device, r.accuracy * 100, r.loss,
                      r.train_seconds, static_cast<double>(test_set->size()) / r.infer_seconds, slowest / r.train_seconds, r.product));
  }
  print("Initial weights and sample order are the same on every backend; accuracies agree to within rounding.\n");
}

}  // namespace

void add_demo_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("demo", "train a small classifier on every healthy backend and compare them");
  arguments->common.add_to(*command);
  command->add_option("--data", arguments->data, "folder of IDX files, such as MNIST or Fashion-MNIST")->type_name("DIR");
  command->add_option("--epochs", arguments->epochs, "passes over the training set")->check(CLI::Range(1, 1000))->capture_default_str();
  command->callback([arguments] { run_demo(*arguments); });
}

}  // namespace tenon::cli
