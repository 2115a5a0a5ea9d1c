// SPDX-License-Identifier: Apache-2.0
// tenon bench memory - access patterns: sequential, every s-th element, random, and a matrix transpose. Rates count the requested bytes,
// not the cache lines transferred.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "cli/memory_roofs.h"

namespace tenon::bench {
namespace {

/// A random permutation of 0..n-1 (Fisher-Yates).
Tensor shuffled(std::int64_t n) {
  Tensor order = Tensor::empty(DType::i32, {n});
  std::int32_t* const values = order.data<std::int32_t>();
  std::iota(values, values + n, 0);
  std::uint64_t seed = 1;
  for (std::int64_t i = n - 1; i > 0; --i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::swap(values[i], values[static_cast<std::int64_t>((seed >> 33) % static_cast<std::uint64_t>(i + 1))]);
  }
  return order;
}

}  // namespace

std::unique_ptr<Report> memory(const Options& options) {
  const Context context = options.make_context(options.threads);
  const Device device = context.default_device();
  auto machine = describe_machine(context, options.threads);
  const bool cpu = device.info().kind == DeviceKind::cpu;
  const std::int64_t total = options.tiny ? 1 << 14 : 1 << 26;  // elements of the large array: 256 MiB
  const std::int64_t side = options.tiny ? 64 : 8192;
  cli::MemoryRoofs roofs;
  if (cpu && !options.tiny) {
    roofs = cli::memory_roofs(options.threads);
    machine["roofs"] = {{"copy_gb_per_s", roofs.copy}, {"read_gb_per_s", roofs.read}};
  }
  auto report = std::make_unique<Report>("tenon bench memory", std::move(machine));
  const auto add = [&](const std::string& name, Graph& graph, const std::vector<Tensor>& inputs, double bytes) {
    say("memory " + name);
    Program program(context, graph);
    const Body body = repeat([&] { static_cast<void>(program.run(inputs)); });
    Entry entry{.name = name, .samples = measure({body}, options.protocol())[0]};
    entry.extra.emplace_back("gb_per_s", bytes / entry.median_ns());
    if (roofs.copy > 0) entry.percent_of_roof = 100 * bytes / entry.median_ns() / roofs.copy;
    report->add(std::move(entry));
  };

  const Tensor x = Tensor::zeros(DType::f32, {total}).to(device);
  for (std::int64_t stride = 1; stride <= 4096; stride *= stride < 64 ? 2 : 4) {
    const std::int64_t n = total / stride;
    if (n < 16) break;
    Graph graph;
    const Value in = graph.input("x", DType::f32, {total});
    graph.output("y", stride == 1 ? ops::reshape(in, {1, total}) : ops::slice(in, 0, 0, total, stride));
    add(stride == 1 ? "sequential" : fmt::format("stride {}", stride), graph, {x}, 2.0 * sizeof(float) * static_cast<double>(n));
  }
  {
    const std::int64_t n = total / 16;
    Graph graph;
    const Value in = graph.input("x", DType::f32, {n});
    const Value order = graph.input("order", DType::i32, {n});
    graph.output("y", ops::gather(in, order));
    add("random", graph, {Tensor::zeros(DType::f32, {n}).to(device), shuffled(n).to(device)}, 2.0 * sizeof(float) * static_cast<double>(n));
  }
  {
    Graph graph;
    const Value in = graph.input("x", DType::f32, {side, side});
    graph.output("y", ops::transpose(in));
    add(fmt::format("transpose {}x{}", side, side), graph, {Tensor::zeros(DType::f32, {side, side}).to(device)},
        2.0 * sizeof(float) * static_cast<double>(side * side));
  }
  report->note("gb_per_s: elements read and written; a stride of 16 floats uses one sixteenth of each cache line");
  report->note("random: a Gather of single elements; reads of the indices are not counted");
  report->note("% of roof: percentage of the copy measured in this run");
  return report;
}

}  // namespace tenon::bench
