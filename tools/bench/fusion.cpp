// SPDX-License-Identifier: Apache-2.0
// tenon bench fusion - the gain of fusion: a chain of ten elementwise ops compared with one of them, and the training step of an MLP, each
// with `fusion: off`, `elementwise` and `full`. Reports the number of kernels and the time.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/variants.h"

namespace tenon::bench {
namespace {

constexpr const char* modes[] = {"off", "elementwise", "full"};

Value chain(Value x, int length) {
  for (int i = 0; i < length; ++i) {
    switch (i % 5) {
      case 0:
        x = ops::mul(x, 1.001);
        break;
      case 1:
        x = ops::add(x, 0.25);
        break;
      case 2:
        x = ops::relu(x);
        break;
      case 3:
        x = ops::neg(x);
        break;
      default:
        x = ops::abs(x);
        break;
    }
  }
  return x;
}

/// One training step of 784-300-100-10: forward, gradients, RMSProp.
Graph training_step(std::int64_t batch) {
  Graph graph;
  Value x = graph.input("x", DType::f32, {batch, 784});
  const Value labels = graph.input("labels", DType::i64, {batch});
  const Value lr = graph.constant(Tensor::scalar(1e-3));
  const std::vector<std::int64_t> sizes{784, 300, 100, 10};
  std::vector<Value> parameters, state;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const Value w = graph.parameter(fmt::format("w{}", i), DType::f32, {sizes[i], sizes[i + 1]});
    const Value b = graph.parameter(fmt::format("b{}", i), DType::f32, {sizes[i + 1]});
    x = ops::add(ops::matmul(x, w), b);
    if (i + 2 < sizes.size()) x = ops::relu(x);
    for (const Value p : {w, b}) {
      parameters.push_back(p);
      state.push_back(graph.parameter(fmt::format("v{}", state.size()), DType::f32, p.shape()));
    }
  }
  const Value loss = ops::softmax_cross_entropy(x, labels);
  tenon_attributes_rmsprop attributes{};
  attributes.rho = 0.999;
  attributes.epsilon = 1e-8;
  ops::rmsprop_step(parameters, gradients(loss, parameters), state, lr, attributes);
  graph.output("loss", loss);
  return graph;
}

}  // namespace

std::unique_ptr<Report> fusion(const Options& options) {
  const Context context = options.make_context(options.threads);
  auto report = std::make_unique<Report>("tenon bench fusion", describe_machine(context, options.threads));
  const std::int64_t n = options.tiny ? 1000 : 20'000'000;

  // One op and the chain in each mode, in turns.
  std::vector<Context> contexts;
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<std::string> names;
  const auto make = [&](const char* mode, int length) {
    contexts.push_back(options.make_context_with(options.threads, fmt::format("fusion={}", mode)));
    Graph graph;
    graph.output("y", chain(graph.input("x", DType::f32, {n}), length));
    programs.push_back(std::make_unique<Program>(contexts.back(), graph));
    names.push_back(fmt::format("chain of {}, {}", length, mode));
  };
  make("off", 1);
  for (const char* mode : modes) make(mode, 10);
  std::vector<std::vector<Tensor>> inputs;
  std::vector<Body> bodies;
  for (std::size_t i = 0; i < programs.size(); ++i) inputs.push_back({Tensor::zeros(DType::f32, {n}).to(contexts[i].default_device())});
  for (std::size_t i = 0; i < programs.size(); ++i) {
    bodies.emplace_back(repeat([&, i] { static_cast<void>(programs[i]->run(inputs[i])); }));
  }
  say("fusion: chains");
  std::vector<Samples> samples = measure(bodies, options.protocol());
  double single = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Entry entry{.name = names[i], .samples = std::move(samples[i])};
    if (i == 0) single = entry.median_ns();
    entry.extra.emplace_back("kernels", static_cast<double>(programs[i]->placement().kernels));
    entry.extra.emplace_back("times_one_op", entry.median_ns() / single);
    report->add(std::move(entry));
  }

  const std::int64_t batch = options.tiny ? 2 : 100;
  programs.clear(), contexts.clear(), inputs.clear(), bodies.clear();
  for (const char* mode : modes) {
    contexts.push_back(options.make_context_with(options.threads, fmt::format("fusion={}", mode)));
    programs.push_back(std::make_unique<Program>(contexts.back(), training_step(batch)));
    for (const auto& [name, value] : programs.back()->parameters()->all()) {
      const bool weight = name.starts_with('w');
      programs.back()->parameters()->set(
          name, weight ? numbers_on_device(contexts.back(), DType::f32, value.shape()) : Tensor::zeros(DType::f32, value.shape()));
    }
    const Device device = contexts.back().default_device();
    inputs.push_back({Tensor::zeros(DType::f32, {batch, 784}).to(device), Tensor::zeros(DType::i64, {batch}).to(device)});
  }
  for (std::size_t i = 0; i < programs.size(); ++i) {
    bodies.emplace_back(repeat([&, i] { static_cast<void>(programs[i]->run(inputs[i])); }));
  }
  say("fusion: training steps");
  samples = measure(bodies, options.protocol());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Entry entry{.name = fmt::format("step of the MLP, {}", modes[i]), .samples = std::move(samples[i])};
    entry.extra.emplace_back("kernels", static_cast<double>(programs[i]->placement().kernels));
    report->add(std::move(entry));
  }
  report->note(fmt::format("chains on {} f32 elements: mul, add, relu, neg, abs in turn", n));
  report->note("target: the fused chain of ten costs at most 1.3 times one op");
  return report;
}

}  // namespace tenon::bench
