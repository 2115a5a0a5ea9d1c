// SPDX-License-Identifier: Apache-2.0
// tenon bench elementwise - single ops through a program, by size and threads. Beyond the caches the roof is memory: a percentage of the
// copy (for reductions, the read) measured in the same run. PyTorch runs the same ops at some sizes, in
// child processes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "bench/benchmarks.h"
#include "bench/child.h"
#include "bench/machine.h"
#include "cli/memory_roofs.h"
#include "text/counted.h"

namespace tenon::bench {
namespace {

struct Op {
  const char* name;
  int operands;  ///< number of operands read
  bool reduces;  ///< reduces to a scalar, so it only reads
  Value (*make)(Value, Value);
};

constexpr Op list[] = {
    {"copy", 1, false,
     [](Value x, Value) {
       return ops::reshape(x, {1, x.shape().count()});
     }},
    {"add", 2, false, [](Value x, Value y) { return ops::add(x, y); }},
    {"mul", 2, false, [](Value x, Value y) { return ops::mul(x, y); }},
    {"relu", 1, false, [](Value x, Value) { return ops::relu(x); }},
    {"exp", 1, false, [](Value x, Value) { return ops::exp(x); }},
    {"log", 1, false, [](Value x, Value) { return ops::log(x); }},
    {"sin", 1, false, [](Value x, Value) { return ops::sin(x); }},
    {"tanh", 1, false, [](Value x, Value) { return ops::tanh(x); }},
    {"sigmoid", 1, false, [](Value x, Value) { return ops::sigmoid(x); }},
    {"erf", 1, false, [](Value x, Value) { return ops::erf(x); }},
    {"gelu", 1, false, [](Value x, Value) { return ops::gelu(x); }},
    {"pow", 2, false, [](Value x, Value y) { return ops::pow(x, y); }},
    {"sum", 1, true, [](Value x, Value) { return ops::reduce_sum(x); }},
    {"max", 1, true, [](Value x, Value) { return ops::reduce_max(x); }},
};

/// Values in (0.1, 2), where every op of the list is defined.
Tensor operand(std::int64_t n, std::uint32_t seed) {
  Tensor tensor = Tensor::empty(DType::f32, {n});
  float* const values = tensor.data<float>();
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = 0.1F + 1.9F * static_cast<float>(seed >> 8) * 0x1p-24F;
  }
  return tensor;
}

std::string size_name(std::int64_t n) {
  return fmt::format("1e{}", static_cast<int>(std::lround(std::log10(static_cast<double>(n)))));
}

/// {"name": "PyTorch ...", "ns": {"relu": [samples], ...}}, or why there is none.
struct Peer {
  std::string name, absent;
  nlohmann::json ns;
};

/// The ops of the list that --op names, or all.
std::vector<Op> chosen_ops(const Options& options) {
  std::vector<std::string> known;
  for (const Op& op : list) known.emplace_back(op.name);
  for (const std::string& name : options.ops) {
    if (std::ranges::find(known, name) == known.end()) {
      throw Error(fmt::format("--op {}: expected one of {}", name, fmt::join(known, ", ")));
    }
  }
  std::vector<Op> chosen;
  for (const Op& op : list) {
    if (options.ops.empty() || std::ranges::find(options.ops, op.name) != options.ops.end()) chosen.push_back(op);
  }
  return chosen;
}

Peer run_peer(const Options& options, const std::vector<Op>& chosen, std::int64_t n, int threads) {
  const std::string script = peer_script("elementwise_torch.py");
  std::vector<std::string> names;
  for (const Op& op : chosen) names.emplace_back(op.name);
  const ChildResult result = run_child({options.python, script, "--ops", fmt::format("{}", fmt::join(names, ",")), "--count",
                                        std::to_string(n), "--threads", std::to_string(threads)});
  const nlohmann::json answer = nlohmann::json::parse(result.output, nullptr, false);
  if (answer.is_object() && answer.contains("ns")) return {answer["name"].get<std::string>(), "", answer["ns"]};
  if (answer.is_object() && answer.contains("absent")) return {"", answer["absent"].get<std::string>(), {}};
  return {"", fmt::format("'{} {}' returned no result (exit code {})", options.python, script, result.exit_code), {}};
}

/// Ratios to the peer over the ops of one size: of the medians, and of the best samples, which other programs disturb least.
struct Ratios {
  double log_of_medians = 0, log_of_bests = 0, lowest_best = 0;
  const char* lowest_name = "";
  int count = 0;

  void add(const char* name, const Entry& entry) {
    const double best = *std::ranges::min_element(entry.peer_samples.ns) / *std::ranges::min_element(entry.samples.ns);
    if (count == 0 || best < lowest_best) {
      lowest_best = best;
      lowest_name = name;
    }
    log_of_medians += std::log(*entry.ratio());
    log_of_bests += std::log(best);
    ++count;
  }
  std::string text() const {
    return fmt::format("geometric means of {} ratios: {:.2f} of the medians, {:.2f} of the best samples, whose lowest is {:.2f} ({})",
                       count, std::exp(log_of_medians / count), std::exp(log_of_bests / count), lowest_best, lowest_name);
  }
};

}  // namespace

std::unique_ptr<Report> elementwise(const Options& options) {
  const std::vector<Op> chosen = chosen_ops(options);
  const Context context = options.make_context(options.threads);
  auto machine = describe_machine(context, options.threads);
  const bool cpu = context.default_device().info().kind == DeviceKind::cpu;
  std::vector<int> thread_counts{1};
  if (options.threads > 1) thread_counts.push_back(options.threads);
  const std::vector<std::int64_t> sizes =
      options.tiny ? std::vector<std::int64_t>{1000} : std::vector<std::int64_t>{1'000, 10'000, 100'000, 1'000'000, 100'000'000};
  const auto has_peer = [](std::int64_t n) { return n == 10'000 || n == 1'000'000 || n == 100'000'000; };
  constexpr std::int64_t beyond_caches = 10'000'000;

  auto report = std::make_unique<Report>("tenon bench elementwise", machine);
  for (const int threads : thread_counts) {
    const Context side_context = options.make_context(threads);
    const Device device = side_context.default_device();
    cli::MemoryRoofs roofs;
    if (cpu && !options.tiny) {
      roofs = cli::memory_roofs(threads);
      report->note(fmt::format("roofs on {}: copy {:.1f} GB/s, read {:.1f} GB/s", counted(threads, "thread"), roofs.copy, roofs.read));
    }
    for (const std::int64_t n : sizes) {
      Peer peer{"", "the peer runs at 1e4, 1e6 and 1e8", {}};
      if (has_peer(n)) {
        say(fmt::format("PyTorch {}, {}", size_name(n), counted(threads, "thread")));
        peer = run_peer(options, chosen, n, threads);
      }
      if (!peer.name.empty()) report->note("peer: " + peer.name);
      Ratios ratios;
      const Tensor x = operand(n, 1).to(device);
      const Tensor y = operand(n, 2).to(device);
      for (const Op& op : chosen) {
        Graph graph;
        const Value vx = graph.input("x", DType::f32, {n});
        const Value vy = op.operands == 2 ? graph.input("y", DType::f32, {n}) : Value();
        graph.output("z", op.make(vx, vy));
        Program program(side_context, graph);
        std::vector<Tensor> inputs{x};
        if (op.operands == 2) inputs.push_back(y);
        const std::string name = fmt::format("{} {}, {}", op.name, size_name(n), counted(threads, "thread"));
        say("elementwise " + name);
        const Body body = repeat([&] { static_cast<void>(program.run(inputs)); });
        Entry entry{.name = name, .samples = measure({body}, options.protocol())[0]};
        const double bytes = static_cast<double>(n) * sizeof(float) * (op.operands + (op.reduces ? 0 : 1));
        entry.extra.emplace_back("gb_per_s", bytes / entry.median_ns());
        entry.extra.emplace_back("ns_per_element", entry.median_ns() / static_cast<double>(n));
        if (n >= beyond_caches && roofs.copy > 0) {
          entry.percent_of_roof = 100 * bytes / entry.median_ns() / (op.reduces ? roofs.read : roofs.copy);
        }
        if (peer.ns.contains(op.name)) {
          entry.peer = peer.name;
          entry.peer_samples.ns = peer.ns[op.name].get<std::vector<double>>();
          entry.peer_samples.cpu_ns = entry.peer_samples.ns;
          ratios.add(op.name, entry);
        } else {
          entry.peer_absent = peer.absent;
        }
        report->add(std::move(entry));
      }
      if (ratios.count > 0) {
        report->note(fmt::format("{}, {}: {}", size_name(n), counted(threads, "thread"), ratios.text()));
      }
    }
  }
  report->note("% of roof: bytes read and written against the copy, for reductions bytes read against the read; from 1e8 elements on");
  report->note("targets: copy, add, mul, relu at least 80 %, reductions at least 80 %, transcendental ops faster than the peer");
  report->note("sigmoid over 1e6: gorgonia.github.io, content/reference/cuda.md, prints 3.349 ms on its GPU and 33.169 ms on its CPU");
  return report;
}

}  // namespace tenon::bench
