// SPDX-License-Identifier: Apache-2.0
#include "bench/layer_times.h"

#include <map>
#include <utility>

#include "cli/joined_kernels.h"

namespace tenon::bench {

std::string layer_of(std::string node, const std::vector<std::string>& layers) {
  const bool gradient = node.starts_with("gradient/");
  if (gradient) node.erase(0, std::string("gradient/").size());
  std::string best;
  for (const std::string& layer : layers) {
    if (layer.size() > best.size() && (node == layer || node.starts_with(layer + "/"))) best = layer;
  }
  if (best.empty()) return node.find("Step") != std::string::npos || node.starts_with("sgd") ? "optimizer" : "loss";
  return gradient ? best + " gradient" : best;
}

std::vector<LayerTime> sum_layers(std::span<const Program::KernelTime> kernels, std::span<const double> ns,
                                  const std::vector<std::string>& layers,
                                  const std::function<std::optional<double>(double, double)>& min_ns) {
  std::vector<LayerTime> times;
  std::map<std::string, std::size_t> position;
  for (std::size_t first = 0, next = 0; first < kernels.size(); first = next) {
    double flops = 0, bytes = 0;  // of the launch
    do {
      flops += static_cast<double>(kernels[next].flops);
      bytes += static_cast<double>(kernels[next].size_bytes);
      ++next;
    } while (next < kernels.size() && cli::is_joined(kernels[next].algorithm, ns[next]) && kernels[next].device == kernels[first].device);
    const std::string name = layer_of(kernels[first].node, layers);
    const auto [found, inserted] = position.try_emplace(name, times.size());
    if (inserted) times.push_back({.name = name});
    LayerTime& layer = times[found->second];
    layer.flops += flops;
    layer.bytes += bytes;
    layer.ns += ns[first];
    const auto bound = min_ns(flops, bytes);
    layer.min_ns = layer.min_ns && bound ? std::optional(*layer.min_ns + *bound) : std::nullopt;
  }
  return times;
}

}  // namespace tenon::bench
