// SPDX-License-Identifier: Apache-2.0
// tenon bench attention - attention and its gradient in each precision, compared with the fastest of PyTorch's implementations. The
// compared time is that of the kernels on the device: from our profile, and from PyTorch's events (on a CPU from the clock).
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
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

/// As many queries as keys, which are not shared by heads.
struct Problem {
  std::int64_t batch, heads, length, size;
  bool causal;

  std::string name() const { return fmt::format("({},{},{},{}){}", batch, heads, length, size, causal ? " causal" : ""); }
  Shape shape() const { return {batch, heads, length, size}; }
  /// Of one product of all queries and keys; a causal one needs half.
  double flops() const { return 2.0 * static_cast<double>(batch * heads * length * length * size) * (causal ? 0.5 : 1); }
};
constexpr Problem on_gpu[] = {{8, 12, 128, 64, false},  {4, 16, 1024, 64, true},   {4, 16, 1024, 128, true},
                              {2, 16, 4096, 128, true}, {2, 16, 4096, 128, false}, {2, 16, 4096, 64, false}};
constexpr Problem on_cpu[] = {{1, 12, 128, 64, false}, {1, 12, 512, 64, true}, {1, 16, 1024, 128, true}};
constexpr Problem of_tiny[] = {{1, 2, 8, 8, true}};

enum class Pass { forward, gradient };
constexpr std::array<std::pair<Pass, const char*>, 2> passes{{{Pass::forward, "forward"}, {Pass::gradient, "gradient"}}};
/// Products of all queries and keys in a pass; the gradient computes the scores again.
constexpr double products(Pass pass) {
  return pass == Pass::forward ? 2 : 5;
}

struct Work {
  std::unique_ptr<Program> program;
  std::vector<Tensor> inputs;
};

Work make_work(const Problem& problem, Pass pass, const Variant& variant) {
  const DType dtype = dtype_of(variant.precision);
  Work work;
  Graph graph;
  const auto input = [&](const char* name, DType type, const Shape& shape) {
    work.inputs.push_back(numbers_on_device(variant.context, type, shape));
    return graph.input(name, type, shape);
  };
  const Attributes attributes =
      Attributes::of(tenon_attributes_attention{.causal = problem.causal, .scale = 1 / std::sqrt(static_cast<double>(problem.size))});
  const Shape shape = problem.shape(), rows{problem.batch, problem.heads, problem.length};
  if (pass == Pass::forward) {
    const Value q = input("q", dtype, shape), k = input("k", dtype, shape), v = input("v", dtype, shape);
    graph.output("y", graph.apply(TENON_OP_Attention, {q, k, v}, attributes)[0]);
  } else {
    const Value dy = input("dy", dtype, shape), q = input("q", dtype, shape), k = input("k", dtype, shape), v = input("v", dtype, shape),
                y = input("y", dtype, shape), log_sum = input("log_sum", DType::f32, rows);
    const std::vector<Value> gradients = graph.apply(TENON_OP_AttentionGrad, {dy, q, k, v, {}, y, log_sum}, attributes);
    const char* const names[] = {"dq", "dk", "dv"};
    for (std::size_t i = 0; i < gradients.size(); ++i) graph.output(names[i], gradients[i]);
  }
  work.program = std::make_unique<Program>(variant.context, graph);
  return work;
}

void bench_pass(std::span<const Problem> problems, Pass pass, const char* name, const Options& options, const Contender& contender,
                std::size_t contenders, Report& report, std::vector<BarGroup>& out_bars) {
  const int runs = options.runs > 0 ? options.runs : options.tiny ? 2 : 20;
  const Variant& variant = contender.variant;
  say(fmt::format("attention {} on {} {}", name, variant.name, name_of(variant.precision)));
  std::vector<Entry> entries;
  nlohmann::json list = nlohmann::json::array();
  for (const Problem& problem : problems) {
    list.push_back({problem.batch, problem.heads, problem.length, problem.size, problem.causal});
    const Work work = make_work(problem, pass, variant);
    Entry entry{.name = fmt::format("{} {}{}", problem.name(), name, suffix_of(variant, contenders)),
                .samples = profile_kernels(*work.program, work.inputs, runs).own};
    const double flops = products(pass) * problem.flops();
    double bytes = 0;
    for (const Tensor& input : work.inputs) bytes += static_cast<double>(input.size_bytes());
    for (std::size_t i = 0; i < work.program->output_count(); ++i) {
      bytes += static_cast<double>(work.program->make_output(i).size_bytes());
    }
    entry.extra.emplace_back("tflop_per_s", flops / std::max(entry.median_ns(), 1.0) / 1e3);
    if (const auto min_ns = contender.roofs.min_ns(flops, bytes)) entry.percent_of_roof = 100 * *min_ns / std::max(entry.median_ns(), 1.0);
    entries.push_back(std::move(entry));
  }
  std::vector<Peer> peers(problems.size(), Peer{"", "naive kernels are compared only with tuned ones"});
  if (variant.is_tuned() && variant.device().info().backend != "reference") {
    peers = run_torch_list({options.python, peer_script("attention_torch.py"), list.dump(), "--pass", name, "--runs", std::to_string(runs),
                            "--threads", std::to_string(options.threads)},
                           variant, problems.size());
  }
  BarGroup bars{fmt::format("{}, {}: us", name, variant.name), {}};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    bars.bars.push_back({problems[i].name(), entry.median_ns() / 1e3, {}});
    set_peer(entry, std::move(peers[i]));
    if (!entry.peer.empty()) {
      report.note("peer: " + entry.peer);
      bars.bars.back().note = fmt::format("PyTorch {:.4g}", median(entry.peer_samples.ns) / 1e3);
    }
    report.add(std::move(entry));
  }
  out_bars.push_back(std::move(bars));
}

}  // namespace

std::unique_ptr<Report> attention(const Options& options) {
  nlohmann::ordered_json machine;
  const std::vector<Contender> contenders = make_contenders(options, machine);
  auto report = std::make_unique<Report>("tenon bench attention", std::move(machine));
  std::vector<BarGroup> bars;
  for (const Contender& contender : contenders) {
    const std::span<const Problem> problems = options.tiny                 ? std::span<const Problem>(of_tiny)
                                              : contender.variant.on_cpu() ? std::span<const Problem>(on_cpu)
                                                                           : std::span<const Problem>(on_gpu);
    for (const auto& [pass, name] : passes) bench_pass(problems, pass, name, options, contender, contenders.size(), *report, bars);
  }
  report->note("median: kernels on the device; (batch, heads, queries and keys, size of a head)");
  report->note("FLOPs: 2 products of all queries and keys in the forward pass, 5 in the gradient; half of them if causal");
  write_chart(options.html, "tenon bench attention", bars);
  return report;
}

}  // namespace tenon::bench
