// SPDX-License-Identifier: Apache-2.0
// Convolutions on the GPU: what each engine of cuDNN computes, and images of few channels.
#include <cmath>
#include <string>
#include <vector>

#include <tenon/functions.h>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::contains;
using test::gpu_config;

struct Window {
  Shape x, w;
  std::vector<std::int64_t> strides, dilations;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
};

/// Padding that differs between the sides, strides that leave pixels over, dilations, and all of these together.
const std::vector<Window>& windows() {
  static const std::vector<Window> all = {
      {{2, 4, 9, 9}, {4, 4, 3, 3}, {1, 1}, {1, 1}, {{1, 1}, {1, 1}}},   {{2, 4, 9, 9}, {4, 4, 3, 3}, {1, 1}, {1, 1}, {{0, 1}, {0, 1}}},
      {{2, 4, 9, 9}, {4, 4, 3, 3}, {1, 1}, {1, 1}, {{1, 0}, {2, 0}}},   {{2, 4, 9, 9}, {4, 4, 3, 3}, {2, 2}, {1, 1}, {{0, 1}, {0, 1}}},
      {{2, 4, 8, 8}, {4, 4, 3, 3}, {2, 2}, {1, 1}, {{1, 1}, {1, 1}}},   {{2, 4, 10, 10}, {4, 4, 3, 3}, {3, 3}, {1, 1}, {{0, 0}, {0, 0}}},
      {{2, 4, 9, 9}, {4, 4, 3, 3}, {1, 1}, {2, 2}, {{1, 3}, {2, 1}}},   {{1, 4, 11, 3}, {2, 4, 5, 3}, {1, 3}, {2, 1}, {{1, 3}, {1, 1}}},
      {{1, 4, 5, 8}, {4, 4, 4, 4}, {3, 2}, {1, 2}, {{3, 2}, {1, 3}}},   {{1, 4, 11, 3}, {2, 4, 5, 3}, {1, 3}, {1, 1}, {{1, 3}, {1, 1}}},
      {{1, 4, 11, 3}, {2, 4, 5, 3}, {1, 3}, {2, 1}, {{2, 2}, {1, 1}}},  {{1, 4, 11, 3}, {2, 4, 5, 3}, {1, 1}, {2, 1}, {{1, 3}, {1, 1}}},
      {{1, 4, 5, 8}, {4, 4, 4, 4}, {3, 2}, {1, 1}, {{3, 2}, {1, 3}}},   {{1, 4, 5, 8}, {4, 4, 4, 4}, {1, 1}, {1, 2}, {{3, 2}, {1, 3}}},
      {{1, 4, 14, 14}, {4, 4, 4, 4}, {3, 2}, {1, 2}, {{2, 2}, {3, 3}}}, {{1, 4, 5, 8}, {4, 4, 4, 4}, {3, 2}, {1, 2}, {{3, 3}, {3, 3}}}};
  return all;
}

/// Numbers of `values`, a type that may be narrower than `dtype`.
Tensor numbers(const Shape& shape, DType values, DType dtype, float phase) {
  std::vector<float> list(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = std::sin(1.7F * static_cast<float>(i) + phase);
  return Tensor::of<float>(list, shape).to(values).to(dtype);
}

/// y, dx and dw of a window, each by a graph of its own; an empty vector for a result that the device refuses.
std::vector<std::vector<float>> results(const Context& context, const Window& window, DType values, DType dtype) {
  ops::ConvOptions options;
  options.strides = window.strides;
  options.dilations = window.dilations;
  options.padding = window.padding;
  tenon_attributes_conv attributes{};
  attributes.struct_size = sizeof attributes;
  attributes.groups = 1;
  std::int64_t sizes[2];
  for (std::size_t d = 0; d < 2; ++d) {
    attributes.strides[d] = window.strides[d];
    attributes.dilations[d] = window.dilations[d];
    attributes.pads_before[d] = window.padding[d].first;
    attributes.pads_after[d] = window.padding[d].second;
    const std::int64_t padded = window.x[d + 2] + window.padding[d].first + window.padding[d].second;
    sizes[d] = (padded - window.dilations[d] * (window.w[d + 2] - 1) - 1) / window.strides[d] + 1;
  }
  const Shape y{window.x[0], window.w[0], sizes[0], sizes[1]};
  std::vector<std::vector<float>> all;
  const auto add = [&](const Shape& first, const Shape& second, const auto& make) {
    try {
      Graph graph;
      const Value a = graph.input("a", dtype, first), b = graph.input("b", dtype, second);
      graph.output("made", ops::cast(make(a, b), DType::f32));
      Program program(context, graph);
      all.push_back(test::floats(program.run({numbers(first, values, dtype, 0.3F), numbers(second, values, dtype, 1.1F)})[0]));
    } catch (const Error& error) {
      const std::string text = error.what();
      CHECK_MESSAGE(contains(text, "which cannot run it"), text);
      all.emplace_back();
    }
  };
  add(window.x, window.w, [&](Value x, Value w) { return ops::conv(x, w, {}, options); });
  add(y, window.w, [&](Value dy, Value w) { return ops::conv_input_grad(dy, w, window.x, attributes); });
  add(y, window.x, [&](Value dy, Value x) { return ops::conv_weight_grad(dy, x, window.w, attributes); });
  return all;
}

TEST_CASE("gpu: every engine of cuDNN that is accepted computes what the reference does, with any padding") {
  static constexpr const char* directions[] = {"conv", "conv_input_grad", "conv_weight_grad"};
  const Context reference(gpu_config("reference:0"));
  std::vector<std::string> algorithms{"heuristic"};
  for (int engine = 0; engine < 48; ++engine) algorithms.push_back("engine " + std::to_string(engine));
  int accepted = 0;
  for (const std::string& algorithm : algorithms) {
    Config config = gpu_config();
    config.backends.options["cuda"] = {{"algorithm", algorithm}};
    const Context context(config);
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (std::size_t i = 0; i < windows().size(); ++i) {
        const std::vector<std::vector<float>> expected = results(reference, windows()[i], dtype, dtype),
                                              got = results(context, windows()[i], dtype, dtype);
        for (std::size_t d = 0; d < 3; ++d) {
          if (got[d].empty()) continue;
          ++accepted;
          float largest = 0;
          for (std::size_t e = 0; e < got[d].size(); ++e) largest = std::max(largest, std::abs(got[d][e] - expected[d][e]));
          const std::string what = algorithm + ": " + directions[d] + " of " + name_of(dtype) + ", window " + std::to_string(i);
          CHECK_MESSAGE(largest < 1e-4F, what, ": error ", largest);
        }
      }
    }
  }
  MESSAGE(accepted, " results of engines");
  CHECK(accepted >= static_cast<int>(windows().size()) * 6);
}

TEST_CASE("gpu: convolutions in 16 bits of images with few channels compute what the reference does") {
  const std::vector<Window> few = {{{2, 3, 20, 21}, {16, 3, 7, 7}, {2, 2}, {1, 1}, {{3, 3}, {3, 3}}},
                                   {{2, 1, 12, 12}, {8, 1, 5, 5}, {1, 1}, {1, 1}, {{2, 2}, {2, 2}}},
                                   {{1, 7, 9, 10}, {24, 7, 3, 3}, {1, 2}, {2, 1}, {{1, 2}, {0, 1}}},
                                   {{3, 2, 6, 5}, {8, 2, 1, 1}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}},
                                   {{2, 3, 9, 9}, {12, 3, 3, 3}, {1, 1}, {1, 1}, {{1, 1}, {1, 1}}}};
  const Context reference(gpu_config("reference:0")), context(gpu_config());
  for (const DType dtype : {DType::f16, DType::bf16}) {
    // half an ulp of rounding, and sums in f32 of up to 840 terms
    const float relative = dtype == DType::f16 ? 1.0F / 2048 : 1.0F / 256;
    for (std::size_t i = 0; i < few.size(); ++i) {
      const std::vector<std::vector<float>> expected = results(reference, few[i], dtype, DType::f32),
                                            got = results(context, few[i], dtype, dtype);
      for (std::size_t d = 0; d < 3; ++d) {
        std::size_t wrong = 0;
        REQUIRE(got[d].size() == expected[d].size());
        for (std::size_t e = 0; e < got[d].size(); ++e) {
          wrong += !(std::abs(got[d][e] - expected[d][e]) <= relative * std::abs(expected[d][e]) + 1e-3F);
        }
        CHECK_MESSAGE(wrong == 0, name_of(dtype), ", window ", i, ", result ", d, ": ", wrong, " wrong elements of ", got[d].size());
      }
    }
  }
}

TEST_CASE("gpu: an image of few channels may begin at any element") {
  const Context context(gpu_config());
  ops::ConvOptions options;
  options.channels_last = true;
  options.padding = {{1, 1}, {1, 1}};
  const Shape batch{3, 5, 7, 3}, images{2, 5, 7, 3}, w{8, 3, 3, 3};  // an image has 210 bytes
  const Tensor filters = numbers(w, DType::bf16, DType::bf16, 1.1F), all = numbers(batch, DType::bf16, DType::bf16, 0.3F);
  const auto result = [&](bool whole) {
    Graph graph;
    const Value x = graph.input("x", DType::bf16, whole ? batch : images), filter = graph.input("w", DType::bf16, w);
    graph.output("y", ops::cast(ops::conv(whole ? ops::slice(x, 0, 1, 3) : x, filter, {}, options), DType::f32));
    const std::vector<float> values = test::floats(all.to(DType::f32));
    const Tensor last = Tensor::of<float>({values.begin() + 105, values.end()}, images).to(DType::bf16);
    Program program(context, graph);
    return test::floats(program.run({whole ? all : last, filters})[0]);
  };
  CHECK(result(true) == result(false));
}

}  // namespace
}  // namespace tenon
