// SPDX-License-Identifier: Apache-2.0
// Which engines NVIDIA's cuDNN proposes for convolutions, if it is installed, on devices that only a description defines.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/conv/conv_engines.h"
#include "backends/cuda/conv/conv_graph.h"
#include "cuda_described.h"
#include "sanitizers.h"

namespace tenon::cuda {
namespace {

constexpr tenon_dtype dtypes[] = {TENON_DTYPE_F16, TENON_DTYPE_BF16, TENON_DTYPE_F32, TENON_DTYPE_F64};
constexpr ConvDirection directions[] = {ConvDirection::forward, ConvDirection::data_gradient, ConvDirection::filter_gradient};

/// Images of size x size, padded by half of the filter.
struct Layer {
  std::int64_t channels, size, filters, kernel = 3, stride = 1, groups = 1;
};
struct Net {
  std::string name;
  std::vector<Layer> layers;
};

/// As the backend asks for it.
ConvProblem problem_of(const Layer& layer, std::int64_t batch, tenon_dtype dtype, ConvDirection direction) {
  const std::int64_t pad = layer.kernel / 2, result = (layer.size + 2 * pad - layer.kernel) / layer.stride + 1;
  ConvProblem problem;
  problem.direction = direction;
  problem.dtype = dtype;
  problem.channels_last = dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16;
  problem.workspace_limit = std::size_t{1} << 30;  // the default of backends.options.cuda.workspace_limit_mib
  problem.shape = {.batch = batch,
                   .channels = layer.channels,
                   .filters = layer.filters,
                   .groups = layer.groups,
                   .image = {layer.size, layer.size},
                   .kernel = {layer.kernel, layer.kernel},
                   .result = {result, result},
                   .strides = {layer.stride, layer.stride},
                   .dilations = {1, 1},
                   .pads_before = {pad, pad},
                   .pads_after = {pad, pad}};
  problem.shape.channels = padded_channels(problem);
  return problem;
}

/// He et al.: Deep Residual Learning for Image Recognition (2016), table 1; the stride of a block is in its 3x3.
Net resnet_50() {
  Net net{"ResNet-50", {{3, 224, 64, 7, 2}}};
  std::int64_t channels = 64, size = 56;
  for (const std::int64_t width : {64, 128, 256, 512}) {
    const std::int64_t stride = width == 64 ? 1 : 2, after = size / stride;
    net.layers.insert(net.layers.end(), {{channels, size, 4 * width, 1, stride},
                                         {channels, size, width, 1},
                                         {width, size, width, 3, stride},
                                         {width, after, 4 * width, 1},
                                         {4 * width, after, width, 1},
                                         {width, after, width}});
    channels = 4 * width;
    size = after;
  }
  return net;
}
/// Simonyan, Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition (2015), table 1, column D.
Net vgg_16() {
  return {"VGG-16",
          {{3, 224, 64},
           {64, 224, 64},
           {64, 112, 128},
           {128, 112, 128},
           {128, 56, 256},
           {256, 56, 256},
           {256, 28, 512},
           {512, 28, 512},
           {512, 14, 512}}};
}
/// Sandler et al.: MobileNetV2 (2018), table 2.
Net mobilenet_v2() {
  struct Stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  Net net{"MobileNetV2", {{3, 224, 32, 3, 2}}};
  std::int64_t channels = 32, size = 112;
  for (const Stage& stage :
       {Stage{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}) {
    for (std::int64_t block = 0; block < std::min<std::int64_t>(stage.blocks, 2); ++block) {  // the others are the second one again
      const std::int64_t stride = block == 0 ? stage.stride : 1, width = channels * stage.expansion;
      if (stage.expansion != 1) net.layers.push_back({channels, size, width, 1});
      net.layers.push_back({width, size, width, 3, stride, width});
      size /= stride;
      net.layers.push_back({width, size, stage.channels, 1});
      channels = stage.channels;
    }
  }
  net.layers.push_back({320, 7, 1280, 1});
  return net;
}

TEST_CASE("cuda conv: NVIDIA's library, if installed, accepts our graphs for a described H200") {
  if (emulation::address_sanitized) return;  // the library keeps memory until the process ends
  const std::optional<Cudnn> functions = installed_cudnn();
  if (!functions) return;
  const Descriptor device = described(*functions, h200);
  const GraphTarget target{nullptr, &device};
  const Layer layer{64, 56, 64};
  for (const tenon_dtype dtype : dtypes) {
    for (const ConvDirection direction : directions) {
      ConvProblem asked = problem_of(layer, 32, dtype, direction);
      asked.deterministic = true;
      asked.shape.pads_before[0] = 0;  // one more element of padding after than before
      asked.shape.pads_after[0] = 2;
      Rejections rejections;
      const std::vector<ConvPlan> plans = acceptable_plans(*functions, target, asked, 1, rejections);
      REQUIRE_MESSAGE(!plans.empty(), text_of(asked) << ": " << rejections.text());
      MESSAGE(text_of(asked) << ": " << plans[0].text() << ", " << plans[0].plan->workspace_bytes() << " bytes");
      const std::optional<ConvPlan> again = remembered_plan(*functions, target, asked, plans[0].text());
      REQUIRE(again.has_value());
      CHECK(again->text() == plans[0].text());
      CHECK(again->plan->workspace_bytes() == plans[0].plan->workspace_bytes());
    }
  }
  // Only addends: engines for other epilogues are compiled on demand, which needs a driver.
  ConvProblem with_bias = problem_of(layer, 32, TENON_DTYPE_F32, ConvDirection::forward);
  with_bias.bias = true;
  Rejections rejections;
  const std::vector<ConvPlan> plans = acceptable_plans(*functions, target, with_bias, 1, rejections);
  REQUIRE_MESSAGE(!plans.empty(), rejections.text());
  CHECK(plans[0].adds);
  ConvProblem transposed = problem_of(layer, 32, TENON_DTYPE_BF16, ConvDirection::data_gradient);
  transposed.bias = transposed.residual = true;
  CHECK_NOTHROW(graph_of(*functions, target, transposed, true));
}

TEST_CASE("cuda conv: NVIDIA's library, if installed, has an engine for every convolution of known nets on a described H100") {
  if (emulation::address_sanitized) return;  // the library keeps memory until the process ends
  const std::optional<Cudnn> functions = installed_cudnn();
  if (!functions) return;
  const Descriptor device = described(*functions, h100);
  const GraphTarget target{nullptr, &device};
  for (const Net& net : {resnet_50(), vgg_16(), mobilenet_v2()}) {
    int asked_count = 0;
    for (const tenon_dtype dtype : {TENON_DTYPE_BF16, TENON_DTYPE_F32}) {
      for (const std::int64_t batch : {1, 32}) {  // batches of 1 are for prediction
        for (const ConvDirection direction : directions) {
          if (batch == 1 && direction != ConvDirection::forward) continue;
          for (const Layer& layer : net.layers) {
            const ConvProblem asked = problem_of(layer, batch, dtype, direction);
            Rejections rejections;
            const std::vector<ConvPlan> plans = acceptable_plans(*functions, target, asked, 1, rejections);
            CHECK_MESSAGE(!plans.empty(), net.name << ": " << text_of(asked) << ": " << rejections.text());
            ++asked_count;
          }
        }
      }
    }
    MESSAGE(net.name << ": " << asked_count << " problems");
  }
}

}  // namespace
}  // namespace tenon::cuda
