// SPDX-License-Identifier: Apache-2.0
// The times of layers in `tenon bench nets`.
#include "bench/layer_times.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace tenon;
using namespace tenon::bench;

TEST_CASE("layer times: the work of a kernel that is joined to a launch belongs to the layer of that launch") {
  const auto kernel = [](const std::string& node, const std::string& algorithm, std::uint64_t flops, std::uint64_t size_bytes) {
    return Program::KernelTime{.node = node, .device = "cpu:0", .algorithm = algorithm, .flops = flops, .size_bytes = size_bytes};
  };
  std::vector<Program::KernelTime> kernels{kernel("conv/conv", "Conv+relu", 1000, 100), kernel("pool/max_pool", "MaxPool (joined)", 10, 50),
                                           kernel("dense/matmul", "MatMul", 400, 100)};
  std::vector<double> ns{300, 0, 200};
  const std::vector<std::string> layers{"conv", "pool", "dense"};
  const auto min_ns = [](double flops, double bytes) { return std::optional(std::max(flops / 10, bytes)); };
  std::vector<LayerTime> times = sum_layers(kernels, ns, layers, min_ns);
  REQUIRE(times.size() == 2);
  CHECK(times[0].name == "conv");
  CHECK(times[0].flops == 1010);
  CHECK(times[0].bytes == 150);
  CHECK(times[0].ns == 300);
  CHECK(*times[0].min_ns == 150);  // of the launch
  CHECK(times[1].name == "dense");

  ns[1] = 40;  // it has a time of its own
  times = sum_layers(kernels, ns, layers, min_ns);
  REQUIRE(times.size() == 3);
  CHECK(times[1].name == "pool");
  CHECK(*times[1].min_ns == 50);

  ns[1] = 0;
  kernels[1].device = "cpu:1";  // the kernel before is not its launch
  CHECK(sum_layers(kernels, ns, layers, min_ns).size() == 3);
}
