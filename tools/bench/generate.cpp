// SPDX-License-Identifier: Apache-2.0
// tenon bench generate - tokens one by one from language models like GPT-2, with the keys and values of past steps kept, compared with
// PyTorch (peers/generate_torch.py): a step after 10 and after 500 others. The roof of a step is one read of the weights and of all keys
// and values.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include <tenon/decoder.h>
#include <tenon/model.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/torch_peer.h"
#include "bench/variants.h"

namespace tenon::bench {
namespace {

struct Net {
  const char* name;
  std::int64_t width, heads, blocks, labels;
};
/// The net of models/gpt, and the size of GPT-2's smallest.
constexpr Net nets_of_bench[] = {{"gpt", 128, 4, 4, 256}, {"gpt2", 768, 12, 12, 50304}};
constexpr Net tiny_net = {"gpt", 16, 2, 1, 32};
constexpr std::int64_t after[] = {10, 500};

Model make_model(const Net& net, const Context& context) {
  const layers::Attention attention{.heads = net.heads, .causal = true, .rotary = true};
  std::vector<LayerDefinition> list{{layers::Embedding{.rows = net.labels, .dim = net.width}, "labels"}};
  for (std::int64_t i = 0; i < net.blocks; ++i) {
    list.push_back(layers::Residual{.body = {layers::LayerNorm{}, attention}, .shortcut = {}});
    list.push_back(layers::Residual{.body = {layers::LayerNorm{}, layers::Dense{4 * net.width, Activation::gelu}, layers::Dense{net.width}},
                                    .shortcut = {}});
  }
  list.push_back(layers::LayerNorm{});
  list.push_back(layers::Dense{.units = net.labels, .weights = {.bias = false}, .tied = "labels"});
  Model model(std::move(list));
  LossDefinition loss;
  loss.loss = Loss::sparse_categorical_crossentropy;
  loss.from_logits = true;
  model.compile(context, {.optimizer = {}, .loss = loss, .metrics = {}});
  model.build({128});
  return model;
}

/// Times steps that follow `position` others, `steps` of them in a sample.
Samples time_steps(Decoder& decoder, std::int64_t position, std::int64_t labels, int runs, std::int64_t steps) {
  Samples samples{.ns = {}, .cpu_ns = {}, .repetitions = steps};
  std::vector<std::int64_t> prompt(static_cast<std::size_t>(position));
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int64_t>(i) % labels;
  const auto count = static_cast<double>(steps);
  for (int run = -1; run < runs; ++run) {  // the first is not counted
    decoder.reset();
    decoder.append(prompt);
    const double cpu = cpu_time_ns();
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < steps; ++i) decoder.append({&prompt[static_cast<std::size_t>(i % position)], 1});
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (run < 0) continue;
    samples.ns.push_back(took.count() / count);
    samples.cpu_ns.push_back((cpu_time_ns() - cpu) / count);
  }
  return samples;
}

}  // namespace

std::unique_ptr<Report> generate(const Options& options) {
  const Context context = options.make_context(options.threads);
  auto machine = describe_machine(context, options.threads);
  const Variant variant{"", context, "", context.config().precision};
  const Roofs roofs = roofs_of(variant, options.threads, options.tiny);
  machine["roofs"]["memory_gb_per_s"] = roofs.gb_per_s;
  auto report = std::make_unique<Report>("tenon bench generate", std::move(machine));
  const std::int64_t capacity = options.tiny ? 64 : 1024, steps = options.tiny ? 2 : 16;
  const int runs = options.runs > 0 ? options.runs : 11;
  std::vector<Net> nets(std::begin(nets_of_bench), std::end(nets_of_bench));
  if (options.tiny) nets = {tiny_net};
  for (const Net& net : nets) {
    if (!options.net.empty() && options.net != net.name) continue;
    say(fmt::format("generate: {}", net.name));
    Model model = make_model(net, context);
    Decoder decoder(model, capacity);
    double first = 0;
    for (const std::int64_t full : after) {
      const std::int64_t position = options.tiny ? full / 10 : full;
      Entry entry{.name = fmt::format("{}, a step after {} others", net.name, position)};
      entry.samples = time_steps(decoder, position, net.labels, runs, steps);
      const Peer peer = run_torch_peer({options.python, peer_script("generate_torch.py"),
                                        "--width",      std::to_string(net.width),
                                        "--heads",      std::to_string(net.heads),
                                        "--blocks",     std::to_string(net.blocks),
                                        "--labels",     std::to_string(net.labels),
                                        "--capacity",   std::to_string(capacity),
                                        "--position",   std::to_string(position),
                                        "--runs",       std::to_string(runs),
                                        "--steps",      std::to_string(steps),
                                        "--threads",    std::to_string(options.threads)},
                                       variant);
      set_peer(entry, peer);
      if (first == 0) first = entry.median_ns();
      const auto size = static_cast<double>(decoder.size_bytes());
      entry.percent_of_roof = 100 * size / roofs.gb_per_s / entry.median_ns();
      entry.extra.emplace_back("tokens_per_s", 1e9 / entry.median_ns());
      entry.extra.emplace_back("mb_per_step", size * 1e-6);
      entry.extra.emplace_back("gb_per_s", size / entry.median_ns());
      entry.extra.emplace_back("times_first", entry.median_ns() / first);
      if (!entry.peer.empty()) report->note("peer: " + entry.peer);
      report->add(std::move(entry));
    }
  }
  report->note(
      "% of roof: of the memory bandwidth, for one read of the weights and of all keys and values; above 100 they are in the cache");
  report->note("target: a step after 500 others costs at most 1.3 times a step after 10");
  return report;
}

}  // namespace tenon::bench
