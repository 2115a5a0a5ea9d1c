// SPDX-License-Identifier: Apache-2.0
// tenon bench conv - each convolution of ResNet-50 with both of its gradients, in each precision, compared with PyTorch. The compared time
// is that of the kernels on the device: from our profile, and from PyTorch's events (on a CPU from the clock). Layout conversions of images
// at the borders of a plan are in a separate column: inside a net they do not happen.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "bench/bar_chart.h"
#include "bench/benchmarks.h"
#include "bench/child.h"
#include "bench/kernel_samples.h"
#include "bench/machine.h"
#include "bench/statistics.h"
#include "bench/torch_peer.h"
#include "bench/variants.h"

namespace tenon::bench {
namespace {

/// Images of size x size with `channels`, padded so that a stride of 1 keeps their size.
struct Layer {
  std::int64_t channels, size, filters, kernel, stride;

  std::int64_t padding() const { return kernel / 2; }
  std::int64_t out() const { return (size + 2 * padding() - kernel) / stride + 1; }
  std::string name() const {
    return fmt::format("{0}x{0} {1}->{2} at {3}{4}", kernel, channels, filters, size, stride > 1 ? fmt::format(" / {}", stride) : "");
  }
};

/// The distinct convolutions of He et al.: Deep Residual Learning for Image Recognition (2016), table 1; the stride of a block is in its
/// 3x3.
constexpr Layer resnet_50[] = {
    {3, 224, 64, 7, 2},   {64, 56, 64, 1, 1},    {64, 56, 64, 3, 1},     {64, 56, 256, 1, 1},   {256, 56, 64, 1, 1},  {256, 56, 128, 1, 1},
    {128, 56, 128, 3, 2}, {128, 28, 512, 1, 1},  {256, 56, 512, 1, 2},   {512, 28, 128, 1, 1},  {128, 28, 128, 3, 1}, {512, 28, 256, 1, 1},
    {256, 28, 256, 3, 2}, {256, 14, 1024, 1, 1}, {512, 28, 1024, 1, 2},  {1024, 14, 256, 1, 1}, {256, 14, 256, 3, 1}, {1024, 14, 512, 1, 1},
    {512, 14, 512, 3, 2}, {512, 7, 2048, 1, 1},  {1024, 14, 2048, 1, 2}, {2048, 7, 512, 1, 1},  {512, 7, 512, 3, 1},
};

enum class Pass { forward, dx, dw };
constexpr std::array<std::pair<Pass, const char*>, 3> passes{{{Pass::forward, "forward"}, {Pass::dx, "dx"}, {Pass::dw, "dw"}}};

struct Work {
  std::unique_ptr<Program> program;
  std::vector<Tensor> inputs;
};

Work make_work(const Layer& layer, Pass pass, std::int64_t batch, const Variant& variant) {
  const DType dtype = dtype_of(variant.precision);
  const Shape x{batch, layer.channels, layer.size, layer.size}, w{layer.filters, layer.channels, layer.kernel, layer.kernel},
      y{batch, layer.filters, layer.out(), layer.out()};
  tenon_attributes_conv attributes{};
  attributes.struct_size = sizeof attributes;
  attributes.groups = 1;
  for (std::size_t i = 0; i < TENON_MAX_SPATIAL; ++i) attributes.strides[i] = attributes.dilations[i] = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    attributes.strides[i] = layer.stride;
    attributes.pads_before[i] = attributes.pads_after[i] = layer.padding();
  }
  Work work;
  Graph graph;
  const auto input = [&](const char* name, const Shape& shape) {
    work.inputs.push_back(numbers_on_device(variant.context, dtype, shape));
    return graph.input(name, dtype, shape);
  };
  // Weights are parameters, as in training, so that a plan may store them in its own layout.
  const auto parameters = std::make_shared<ParameterStore>();
  const auto weights = [&] {
    parameters->create("w", variant.device(), dtype, w);
    parameters->set("w", numbers_on_device(variant.context, dtype, w));
    return graph.parameter("w", dtype, w);
  };
  if (pass == Pass::forward) {
    ops::ConvOptions options;
    options.strides = {layer.stride, layer.stride};
    options.padding = {{layer.padding(), layer.padding()}, {layer.padding(), layer.padding()}};
    const Value in = input("x", x);
    graph.output("y", ops::conv(in, weights(), {}, options));
  } else if (pass == Pass::dx) {
    const Value dy = input("dy", y);
    graph.output("dx", ops::conv_input_grad(dy, weights(), x, attributes));
  } else {
    const Value dy = input("dy", y);
    graph.output("dw", ops::conv_weight_grad(dy, input("x", x), w, attributes));
  }
  work.program = std::make_unique<Program>(variant.context, graph, ProgramOptions{.device = {}, .parameters = parameters});
  return work;
}

/// Returns one peer for each layer.
std::vector<Peer> run_torch(const std::vector<Layer>& layers, const char* pass, std::int64_t batch, const Options& options,
                            const Variant& variant, int runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const Layer& l : layers) list.push_back({l.channels, l.size, l.filters, l.kernel, l.stride});
  return run_torch_list({options.python, peer_script("conv_torch.py"), list.dump(), "--pass", pass, "--batch", std::to_string(batch),
                         "--runs", std::to_string(runs), "--threads", std::to_string(options.threads)},
                        variant, layers.size());
}

/// Measures all layers of one pass on one variant.
void bench_pass(const std::vector<Layer>& layers, Pass pass, const char* name, std::int64_t batch, const Options& options,
                const Contender& contender, std::size_t contenders, Report& report, std::vector<std::vector<std::string>>& out_sums,
                std::vector<BarGroup>& out_bars) {
  const int runs = options.runs > 0 ? options.runs : options.tiny ? 2 : 20;
  const Variant& variant = contender.variant;
  say(fmt::format("conv {} batch {} on {} {}", name, batch, variant.name, name_of(variant.precision)));
  std::vector<Entry> entries;
  for (const Layer& layer : layers) {
    const Work work = make_work(layer, pass, batch, variant);
    KernelSamples samples = profile_kernels(*work.program, work.inputs, runs);
    Entry entry{.name = fmt::format("{} {} batch {}{}", layer.name(), name, batch, suffix_of(variant, contenders)),
                .samples = std::move(samples.own)};
    Protocol protocol = options.protocol();
    protocol.runs = runs;
    const Samples whole = measure({repeat([&] { work.program->run(work.inputs); })}, protocol)[0];
    const double flops =
        2.0 * static_cast<double>(batch * layer.filters * layer.out() * layer.out() * layer.channels * layer.kernel * layer.kernel);
    double bytes = 0;
    for (const Tensor& input : work.inputs) bytes += static_cast<double>(input.size_bytes());
    bytes += static_cast<double>(work.program->make_output(0).size_bytes());
    entry.extra.emplace_back("gflop_per_s", flops / std::max(entry.median_ns(), 1.0));
    entry.extra.emplace_back("border_us", median(samples.border_ns) / 1e3);
    entry.extra.emplace_back("run_us", median(whole.ns) / 1e3);
    if (const auto min_ns = contender.roofs.min_ns(flops, bytes)) entry.percent_of_roof = 100 * *min_ns / std::max(entry.median_ns(), 1.0);
    entries.push_back(std::move(entry));
  }
  std::vector<Peer> peers(layers.size(), Peer{"", "naive kernels are compared only with tuned ones"});
  if (variant.is_tuned() && variant.device().info().backend != "reference") peers = run_torch(layers, name, batch, options, variant, runs);
  double ours = 0, theirs = 0;
  std::size_t compared = 0;
  BarGroup bars{fmt::format("{}, batch {}, {}: us", name, batch, variant.name), {}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Entry& entry = entries[i];
    ours += entry.median_ns() / 1e6;
    bars.bars.push_back({layers[i].name(), entry.median_ns() / 1e3, {}});
    set_peer(entry, std::move(peers[i]));
    if (!entry.peer.empty()) {
      report.note("peer: " + entry.peer);
      theirs += median(entry.peer_samples.ns) / 1e6;
      compared += 1;
      bars.bars.back().note = fmt::format("PyTorch {:.4g}", median(entry.peer_samples.ns) / 1e3);
    }
    report.add(std::move(entry));
  }
  const bool all = compared == layers.size();
  out_sums.push_back({variant.name, name_of(variant.precision), name, fmt::format("{:.4g}", ours),
                      all ? fmt::format("{:.4g}", theirs) : "-", all ? fmt::format("{:.3f}", theirs / ours) : "-"});
  out_bars.push_back(std::move(bars));
}

}  // namespace

std::unique_ptr<Report> conv(const Options& options) {
  nlohmann::ordered_json machine;
  const std::vector<Contender> contenders = make_contenders(options, machine);
  auto report = std::make_unique<Report>("tenon bench conv", std::move(machine));
  std::vector<Layer> layers(std::begin(resnet_50), std::end(resnet_50));
  if (options.tiny) layers = {{3, 12, 4, 3, 2}, {4, 6, 8, 1, 1}};
  const std::vector<std::int64_t> batches = !options.batches.empty() ? options.batches : std::vector<std::int64_t>{options.tiny ? 1 : 32};
  std::vector<std::vector<std::string>> sums;
  std::vector<BarGroup> bars;
  for (const std::int64_t batch : batches) {
    for (const Contender& contender : contenders) {
      for (const auto& [pass, name] : passes) {
        bench_pass(layers, pass, name, batch, options, contender, contenders.size(), *report, sums, bars);
      }
    }
  }
  report->table("sums over layers", {"on", "precision", "pass", "ours ms", "PyTorch ms", "ratio"}, std::move(sums), true);
  report->note("median: kernels of the convolution; border_us: layout conversions of images and weights; run_us: a whole run");
  report->note("16-bit precisions: operands and results in 16 bits, sums in f32");
  report->note("target on a GPU: ratio at least 1.0 in each pass and precision");
  write_chart(options.html, "tenon bench conv", bars);
  return report;
}

}  // namespace tenon::bench
