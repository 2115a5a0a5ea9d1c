// SPDX-License-Identifier: Apache-2.0
// tenon bench gemm - matrix products through a program (one Gemm node), compared with direct OpenBLAS calls, in turns on the same operands.
// Both sides have the same number of threads: compared with a serial OpenBLAS, our side also runs with one thread.
#include <fmt/core.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/openblas_peer.h"
#include "cli/roofs.h"
#include "text/counted.h"

namespace tenon::bench {
namespace {

struct Case {
  ProductShape shape;
  DType dtype = DType::f32;
};

std::string name_of_case(const Case& c, int threads) {
  return fmt::format("{} {}x{}x{}{}{}, {}", name_of(c.dtype), c.shape.m, c.shape.k, c.shape.n, c.shape.trans_a ? " A'" : "",
                     c.shape.trans_b ? " B'" : "", counted(threads, "thread"));
}

std::vector<Case> cases(bool tiny) {
  std::vector<Case> list;
  for (const DType dtype : {DType::f32, DType::f64}) {
    if (tiny) {
      list.push_back({{16, 16, 16, false, true}, dtype});
      continue;
    }
    for (const std::int64_t n : {64, 128, 256, 512, 1024}) list.push_back({{n, n, n}, dtype});
  }
  if (tiny) return list;
  // The products of the MLP 784-300-100 in a training step of 100: forward, gradient of the input, gradient of the weights.
  list.push_back({{100, 300, 784}});
  list.push_back({{784, 300, 100, true, false}});
  list.push_back({{100, 100, 300}});
  list.push_back({{100, 300, 100, false, true}});
  list.push_back({{300, 100, 100, true, false}});
  // Of a transformer with 768 channels in a training step of 128 tokens: forward, and gradient of the input.
  list.push_back({{128, 768, 768}});
  list.push_back({{128, 768, 768, false, true}});
  return list;
}

/// Small whole numbers: sums of their products are exact in f32 up to 2^24, so both sides must agree exactly.
template <class T>
Tensor operand(const Shape& shape, std::uint32_t seed) {
  Tensor tensor = Tensor::empty(dtype_of<T>(), shape);
  T* const values = tensor.data<T>();
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = static_cast<T>(static_cast<int>(seed >> 28) - 8);
  }
  return tensor;
}

template <class T>
void run_case(const Case& c, const Context& context, int threads, const OpenBlasPeer* peer, const std::string& peer_absent,
              std::optional<double> peak, const Protocol& protocol, Report& report) {
  const ProductShape& s = c.shape;
  const Tensor a = operand<T>(s.trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, 1);
  const Tensor b = operand<T>(s.trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
  Tensor c_peer = Tensor::zeros(c.dtype, {s.m, s.n});

  Graph graph;
  const Value va = graph.input("a", c.dtype, a.shape());
  const Value vb = graph.input("b", c.dtype, b.shape());
  graph.output("c", ops::gemm(va, vb, {}, {.trans_a = s.trans_a, .trans_b = s.trans_b}));
  Program program(context, graph);
  const Device device = context.default_device();
  const std::vector<Tensor> inputs{a.to(device), b.to(device)};
  const std::string name = name_of_case(c, threads);

  std::vector<Body> bodies{repeat([&] { static_cast<void>(program.run(inputs)); })};
  if (peer != nullptr) {
    bodies.emplace_back(repeat([&] { peer->product(s, a.data<T>(), b.data<T>(), c_peer.data<T>()); }));
    bodies.back()(1);
    const Tensor ours = program.run(inputs).front().to_host();
    for (std::int64_t i = 0; i < ours.count(); ++i) {
      if (ours.data<T>()[i] == c_peer.data<T>()[i]) continue;
      throw Error(Status::internal, fmt::format("bench gemm: {}: expected element {} to be {} as with OpenBLAS, got {}", name, i,
                                                c_peer.data<T>()[i], ours.data<T>()[i]));
    }
  }
  say(fmt::format("gemm {}", name));
  std::vector<Samples> samples = measure(bodies, protocol);
  Entry entry{.name = name, .samples = std::move(samples[0])};
  if (peer != nullptr) {
    entry.peer = peer->name();
    entry.peer_samples = std::move(samples[1]);
  } else {
    entry.peer_absent = peer_absent;
  }
  const double gflops = s.flops() / entry.median_ns();
  entry.extra.emplace_back("gflop_per_s", gflops);
  if (peak) entry.percent_of_roof = 100 * gflops / *peak;
  report.add(std::move(entry));
}

}  // namespace

std::unique_ptr<Report> gemm(const Options& options) {
  const Context context = options.make_context(options.threads);
  auto machine = describe_machine(context, options.threads);
  std::string absent;
  std::unique_ptr<OpenBlasPeer> peer = OpenBlasPeer::open(options.threads, absent);

  // Compare with equal numbers of threads; if the peer cannot match, measure our side without a peer as well.
  struct Side {
    int threads;
    bool with_peer;
  };
  std::vector<Side> sides{{options.threads, peer != nullptr && peer->threads() == options.threads}};
  if (peer != nullptr && !sides[0].with_peer) {
    absent = fmt::format("the only OpenBLAS found, {}, has a different number of threads; it is the peer of the rows with {}", peer->name(),
                         counted(peer->threads(), "thread"));
    sides.push_back({peer->threads(), true});
  }
  std::map<std::pair<int, DType>, std::optional<double>> peaks;
  const bool cpu = context.default_device().info().kind == DeviceKind::cpu;  // the roofs are this processor's
  for (const Side& side : sides) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8}) {
      const auto peak = cpu ? cli::peak_gflops(dtype, side.threads) : std::nullopt;
      peaks[{side.threads, dtype}] = peak;
      if (peak) machine["roofs"][fmt::format("{}_gflop_per_s_{}_threads", name_of(dtype), side.threads)] = std::round(*peak * 10) / 10;
    }
  }
  auto report = std::make_unique<Report>("tenon bench gemm", std::move(machine));
  Protocol protocol = options.protocol();
  // OpenBLAS's idle workers keep polling for work for 2^26 ticks: about 34 ms at 2 GHz.
  if (peer != nullptr && peer->threads() > 1 && !options.tiny) protocol.settle_ms = 60;
  for (const Side& side : sides) {
    const Context side_context = side.threads == options.threads ? context : options.make_context(side.threads);
    for (const Case& c : cases(options.tiny)) {
      const auto run = c.dtype == DType::f32 ? run_case<float> : run_case<double>;
      run(c, side_context, side.threads, side.with_peer ? peer.get() : nullptr, absent, peaks[{side.threads, c.dtype}], protocol, *report);
    }
  }
  report->note("names are m x k x n; a quote marks a transposed operand. % of roof: of the measured peak of fused multiply-adds");
  report->note("target: ratio at least 0.97 at 1024");
  return report;
}

}  // namespace tenon::bench
