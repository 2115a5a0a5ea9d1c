// SPDX-License-Identifier: Apache-2.0
// Convolutions that multiply their image by a factor of each channel, compute the mean of their result, and run as a chain: which nodes of
// a plan these replace.
#include <tenon/sdk/backend.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "sdk_channels_last_testing.h"
#include "sdk_testing_kernels.h"

namespace tenon::sdk_test {
namespace {

/// What the convolutions take; only one test uses it at a time.
std::atomic<std::uint32_t> longest_chain{0};
std::atomic<std::size_t> chain_bytes{0};  ///< of each result between
std::atomic<bool> takes_scales{true}, takes_means{true};

/// 1x1, images with channels last.
template <class T>
void convolve(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  const std::int64_t channels = x.shape[3], results = call.outputs[0].shape[3];
  const std::int64_t pixels = x.shape[1] * x.shape[2], images = x.shape[0];
  const T* const scale = call.has_input(sdk::conv_input::scale) ? call.input<T>(sdk::conv_input::scale) : nullptr;
  for (std::int64_t row = 0; row < images * pixels; ++row) {
    for (std::int64_t o = 0; o < results; ++o) {
      T sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        const T factor = scale == nullptr ? T(1) : scale[row / pixels * channels + c];
        sum += call.input<T>(0)[row * channels + c] * factor * call.input<T>(1)[o * channels + c];
      }
      call.output<T>(0)[row * results + o] = sum;
    }
  }
  if (!call.has_output(1)) return;
  for (std::int64_t i = 0; i < images * results; ++i) {
    T sum = 0;
    for (std::int64_t p = 0; p < pixels; ++p) sum += call.output<T>(0)[(i / results * pixels + p) * results + i % results];
    call.output<T>(1)[i] = sum / T(pixels);
  }
}
template <class T>
void conv(const sdk::Call& call) {
  note();
  if constexpr (!std::is_same_v<T, sdk::BFloat16>) convolve<T>(call);  // no test executes a plan of bf16
}
template <class T>
void reduce_mean(const sdk::Call& call) {
  note();
  const sdk::Operand& x = call.inputs[0];
  const auto& reduced = call.attr<tenon_attributes_axes>();
  for (std::int64_t i = 0; i < call.outputs[0].count; ++i) call.output<T>(0)[i] = 0;
  for (std::int64_t i = 0; i < x.count; ++i) {
    std::int64_t to = 0;
    for (std::uint32_t d = 0, rest = 0; d < x.rank; ++d) {
      const bool is_reduced = rest < reduced.count && reduced.axes[rest] == d;
      if (is_reduced) ++rest;
      if (!is_reduced) to = to * x.shape[d] + i / x.strides[d] % x.shape[d];
    }
    call.output<T>(0)[to] += call.input<T>(0)[i];
  }
  for (std::int64_t i = 0; i < call.outputs[0].count; ++i) call.output<T>(0)[i] /= T(x.count / call.outputs[0].count);
}

bool takes_scale(const sdk::Call& call) {
  REQUIRE(call.has_input(sdk::conv_input::scale));
  return takes_scales;
}
bool takes_mean(const sdk::Call& call) {
  REQUIRE(call.output_count == 2);
  return takes_means;
}
bool forms_chain(const sdk::Call*, std::uint32_t count) {
  REQUIRE(count >= 2);
  REQUIRE(count <= sdk::max_calls_in_chain);
  return count <= longest_chain;
}
/// The largest of windows of 1x2, images with channels last.
template <class T>
void pool(const sdk::Call& call) {
  const sdk::Operand& y = call.outputs[0];
  const std::int64_t channels = y.shape[3], columns = y.shape[2];
  for (std::int64_t i = 0; i < y.count; ++i) {
    const std::int64_t row = i / channels / columns, column = i / channels % columns;
    const T* const x = call.input<T>(0) + (row * call.inputs[0].shape[2] + column) * channels + i % channels;
    call.output<T>(0)[i] = std::max(x[0], x[channels]);
  }
}
template <class T>
void max_pool(const sdk::Call& call) {
  note();
  pool<T>(call);
}

std::size_t bytes_between(const sdk::Call*, std::uint32_t count, std::uint32_t i) {
  REQUIRE(i + 1 < count);
  return chain_bytes;
}
/// Leaves nothing of use in the memory of what is between the calls.
void run_chain(const sdk::Call* calls, std::uint32_t count) {
  note();
  std::vector<float> between;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i > 0) REQUIRE(calls[i].inputs[0].data == calls[i - 1].outputs[0].data);
    std::vector<sdk::Operand> inputs(calls[i].inputs, calls[i].inputs + calls[i].input_count);
    std::vector<sdk::Operand> outputs(calls[i].outputs, calls[i].outputs + calls[i].output_count);
    const std::vector<float> read = between;
    if (i > 0) inputs[0].data = const_cast<float*>(read.data());
    if (i + 1 < count) {
      between.resize(static_cast<std::size_t>(outputs[0].count));
      std::fill_n(outputs[0].as<float>(), std::min(chain_bytes / sizeof(float), between.size()), std::numeric_limits<float>::quiet_NaN());
      outputs[0].data = between.data();
    }
    sdk::Call call = calls[i];
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    if (i > 0) REQUIRE((call.input_count > 1 || i + 1 == count));
    call.input_count > 1 ? convolve<float>(call) : pool<float>(call);
  }
}

}  // namespace

TENON_KERNEL_WITH(conv,
                  (sdk::Traits{.channels_last = {0b1, 0b1},
                               .scaled_input = takes_scale,
                               .pixel_means = takes_mean,
                               .chains = forms_chain,
                               .run_chain = run_chain,
                               .chain_result_size = bytes_between,
                               .chains_max_pool = true}),
                  float, sdk::BFloat16)
TENON_KERNEL_WITH(max_pool, (sdk::Traits{.channels_last = {0b1, 0b1}}), float)
TENON_KERNEL(reduce_mean, float)

namespace {

const sdk::Kernel elementwise_cast = [] {
  sdk::Kernel kernel = kernel_cast;
  kernel.traits.elementwise = true;
  return kernel;
}();

constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Mul, 14, 0, &kernel_mul},          {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Sigmoid, 13, 0, &kernel_sigmoid},  {TENON_OP_ReduceMean, 13, 0, &kernel_reduce_mean},
    {TENON_OP_Reshape, 14, 0, &kernel_reshape},  {TENON_OP_Transpose, 13, 0, &kernel_transpose},
    {TENON_OP_Conv, 11, 0, &kernel_conv},        {TENON_OP_Cast, 13, 0, &elementwise_cast},
    {TENON_OP_MaxPool, 12, 0, &kernel_max_pool}, {TENON_OP_NONE, 0, 0, nullptr},
};
const sdk::BackendSpec& blocks_spec() {
  static constexpr sdk::BackendSpec spec{"blocks",
                                         "1",
                                         "tests",
                                         "convolutions",
                                         nullptr,
                                         1,
                                         0,
                                         {},
                                         [](sdk::Host host) {
                                           return sdk::make_cpu_backend(host, "convolutions"); }};
  return spec;
}
tenon_status query_blocks(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<blocks_spec, rows>(host, out_info);
}

/// Runs the net with fusion and without, which must agree; returns what the plan's convolutions and pools are.
std::vector<std::string> convolutions_of(Net& net) {
  std::vector<std::string> algorithms;
  std::vector<Floats> results[2];
  for (const bool fused : {false, true}) {
    Session session(1, query_blocks);
    Run run(session, net, options(fused ? TENON_FUSION_FULL : TENON_FUSION_OFF));
    for (std::uint32_t v = 0; v < net.values.size(); ++v) {
      const std::uint32_t kind = net.values[v].kind;
      if (kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER) run.set(v, some(net.values[v].count(), v + 1000));
    }
    run();
    for (std::uint32_t v = 0; v < net.values.size(); ++v) {
      if (net.values[v].kind == TENON_VALUE_OUTPUT) results[fused].push_back(run.get(v));
    }
    if (!fused) continue;
    ErrorText error;
    tenon_profile_record records[32] = {};
    std::uint32_t count = 0;
    REQUIRE(session.table->profile->read(run.plan, 0, records, sizeof records[0], 32, &count, error) == TENON_OK);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string algorithm = records[i].algorithm;
      if (algorithm.rfind("Conv", 0) == 0 || algorithm.rfind("MaxPool", 0) == 0) algorithms.push_back(algorithm);
    }
  }
  CHECK(results[0] == results[1]);
  return algorithms;
}

using Names = std::vector<std::string>;

struct Block : Images {
  Block() {
    longest_chain = 0;
    chain_bytes = std::numeric_limits<std::size_t>::max();
    takes_scales = takes_means = true;
  }
  const std::uint32_t x = net.input({2, 3, 4, 5});

  std::uint32_t mean(std::uint32_t of, std::initializer_list<std::int64_t> over, Shape shape, bool keepdims = true, bool out = false) {
    const auto y = result(std::move(shape), out);
    net.node(TENON_OP_ReduceMean, {of}, {y}, axes(over, keepdims));
    return y;
  }
};

TEST_CASE("sdk: a convolution multiplies its image by a factor of each image and channel, the product's first operand or second") {
  for (const bool image_first : {true, false}) {
    Block b;
    const auto s = b.apply(TENON_OP_Sigmoid, {b.net.input({2, 4, 1, 1})}), y = b.conv(b.x, 4);
    b.conv(b.apply(TENON_OP_Mul, image_first ? std::vector{y, s} : std::vector{s, y}), 3, true);
    CHECK(convolutions_of(b.net) == Names{"Conv", "Conv+scale"});
    takes_scales = false;
    CHECK(convolutions_of(b.net) == Names{"Conv", "Conv"});
  }
}

TEST_CASE("sdk: products with other factors, and those that are read elsewhere, are kernels of their own") {
  for (const Shape& shape : {Shape{1, 4, 1, 1}, Shape{2, 1, 1, 1}, Shape{2, 4, 4, 5}, Shape{4, 1, 1}, Shape{1}}) {
    Block b;
    b.conv(b.apply(TENON_OP_Mul, {b.conv(b.x, 4), b.net.input(shape)}), 3, true);
    CHECK(convolutions_of(b.net) == Names{"Conv", "Conv"});
  }
  Block b;
  const auto product = b.apply(TENON_OP_Mul, {b.conv(b.x, 4), b.net.input({2, 4, 1, 1})});
  b.conv(product, 3, true);
  b.apply(TENON_OP_Neg, {product}, true);
  CHECK(convolutions_of(b.net) == Names{"Conv", "Conv"});
}

TEST_CASE("sdk: a convolution does not overwrite the image that it would multiply") {
  for (const std::int64_t pixels : {1, 5}) {
    Block b;
    const auto p = b.net.input({2, 4, 1, pixels});
    const auto y = b.conv(b.apply(TENON_OP_Mul, {p, b.net.input({2, 4, 1, 1})}), 4, true);
    b.net.donate(p, y);
    for (const std::string& name : convolutions_of(b.net)) CHECK(name == (pixels == 1 ? "Conv" : "Conv+scale"));  // of a transposed copy
  }
}

TEST_CASE("sdk: a convolution computes the mean over the pixels of its result, which others may read too") {
  for (const bool keepdims : {true, false}) {
    Block b;
    const auto y = b.conv(b.x, 4);
    b.mean(y, {2, 3}, keepdims ? Shape{2, 4, 1, 1} : Shape{2, 4}, keepdims, true);
    b.apply(TENON_OP_Neg, {y}, true);
    CHECK(convolutions_of(b.net) == Names{"Conv+mean"});
    takes_means = false;
    CHECK(convolutions_of(b.net) == Names{"Conv"});
  }
  Block b;
  const auto y = b.conv(b.x, 4);
  b.conv(b.apply(TENON_OP_Mul, {y, b.apply(TENON_OP_Sigmoid, {b.mean(y, {2, 3}, {2, 4, 1, 1})})}), 3, true);
  CHECK(convolutions_of(b.net) == Names{"Conv+mean", "Conv+scale"});
}

TEST_CASE("sdk: other means of a convolution's result are kernels of their own") {
  Block b;
  const auto y = b.conv(b.x, 4);
  b.mean(y, {1, 2}, {2, 1, 1, 5}, true, true);
  b.mean(y, {0, 2, 3}, {1, 4, 1, 1}, true, true);
  b.mean(y, {3}, {2, 4, 4, 1}, true, true);
  CHECK(convolutions_of(b.net) == Names{"Conv"});
}

TEST_CASE("sdk: a profile counts the nodes that a kernel computes, not the conversions around those of f32, whichever it was made for") {
  for (const bool mean_first : {true, false}) {  // it and the product read the same conversion of y
    Net net;
    takes_scales = takes_means = true;
    const auto input = [&](Shape shape) { return net.input(std::move(shape), {}, TENON_DTYPE_BF16); };
    const auto tensor = [&](Shape shape) { return net.internal(std::move(shape), TENON_DTYPE_BF16); };
    const auto x = input({2, 4, 4, 5}), w = input({4, 4, 1, 1});
    const auto y = tensor({2, 4, 4, 5}), scale = tensor({2, 4, 1, 1}), product = tensor({2, 4, 4, 5});
    const auto mean = mean_first ? tensor({2, 4, 1, 1}) : net.output({2, 4, 1, 1}, TENON_DTYPE_BF16);
    net.node(TENON_OP_Conv, {x, w}, {y}, conv_attributes());
    if (mean_first) net.node(TENON_OP_ReduceMean, {y}, {mean}, axes({2, 3}, true));
    net.node(TENON_OP_Sigmoid, {mean_first ? mean : input({2, 4, 1, 1})}, {scale});
    net.node(TENON_OP_Mul, {y, scale}, {product});
    net.node(TENON_OP_Conv, {product, w}, {net.output({2, 4, 4, 5}, TENON_DTYPE_BF16)}, conv_attributes());
    if (!mean_first) net.node(TENON_OP_ReduceMean, {y}, {mean}, axes({2, 3}, true));
    Session session(1, query_blocks);
    const Run run(session, net, options(TENON_FUSION_FULL));
    tenon_profile_record records[16] = {};
    std::uint32_t count = 0;
    ErrorText error;
    REQUIRE(session.table->profile->read(run.plan, 0, records, sizeof records[0], 16, &count, error) == TENON_OK);
    std::string counts;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string name = records[i].algorithm;
      if (name != "Transpose") counts += name + " " + std::to_string(records[i].fused_count) + ", ";
    }
    CHECK(counts == (mean_first ? "Conv+mean 2, Cast+Cast+Sigmoid+Cast 1, Conv+scale 2, "
                                : "Conv+mean 2, Cast+Sigmoid+Cast 1, Conv+scale 2, Cast 1, "));
  }
}

TEST_CASE("sdk: convolutions that read each other's results run as one, as many as the kernel takes") {
  const auto names = [](std::uint32_t longest) {
    Block b;
    longest_chain = longest;
    b.conv(b.conv(b.conv(b.conv(b.x, 4), 6), 5), 2, true);
    return convolutions_of(b.net);
  };
  CHECK(names(1) == Names{"Conv", "Conv", "Conv", "Conv"});
  CHECK(names(2) == Names{"Conv", "Conv (joined)", "Conv", "Conv (joined)"});
  CHECK(names(3) == Names{"Conv", "Conv (joined)", "Conv (joined)", "Conv"});
}

TEST_CASE("sdk: a result between the calls of a chain takes as much memory as the chain uses") {
  const auto workspace = [](std::size_t bytes) {
    Block b;
    longest_chain = 3;
    chain_bytes = bytes;
    b.conv(b.conv(b.conv(b.x, 400), 500), 2, true);
    CHECK(convolutions_of(b.net) == Names{"Conv", "Conv (joined)", "Conv (joined)"});
    Session session(1, query_blocks);
    return Run(session, b.net).info.workspace_size_bytes;
  };
  const std::uint64_t most = workspace(~std::size_t{0});
  CHECK(most - workspace(64) == (400 + 500) * 2 * 4 * 5 * sizeof(float) - 2 * 64);
  CHECK(most - workspace(0) == (400 + 500) * 2 * 4 * 5 * sizeof(float));
}

TEST_CASE("sdk: a chain ends with a result that others read, and with a mean") {
  Block b;
  longest_chain = 3;
  const auto first = b.conv(b.x, 4), second = b.conv(first, 4), third = b.conv(second, 5);
  b.conv(third, 3, true);
  b.apply(TENON_OP_Neg, {second}, true);
  CHECK(convolutions_of(b.net) == Names{"Conv", "Conv (joined)", "Conv", "Conv (joined)"});
  Block c;
  longest_chain = 3;
  const auto y = c.conv(c.conv(c.x, 4), 4);
  c.mean(y, {2, 3}, {2, 4, 1, 1}, true, true);
  c.conv(y, 3, true);
  CHECK(convolutions_of(c.net) == Names{"Conv", "Conv (joined)+mean", "Conv"});
}

TEST_CASE("sdk: a MaxPool ends a chain of convolutions, unless others read what it reads or it has indices") {
  const auto names = [](std::uint32_t longest) {
    Block b;
    longest_chain = longest;
    b.conv(b.max_pool(b.conv(b.conv(b.x, 4), 6)), 2, true);
    return convolutions_of(b.net);
  };
  CHECK(names(1) == Names{"Conv", "Conv", "MaxPool", "Conv"});
  CHECK(names(2) == Names{"Conv", "Conv (joined)", "MaxPool", "Conv"});
  CHECK(names(3) == Names{"Conv", "Conv (joined)", "MaxPool (joined)", "Conv"});
  Block b;
  longest_chain = 3;
  const auto y = b.conv(b.x, 4);
  b.max_pool(y, true);
  b.apply(TENON_OP_Neg, {y}, true);
  CHECK(convolutions_of(b.net) == Names{"Conv", "MaxPool"});
  Block alone;
  longest_chain = 3;
  alone.conv(alone.max_pool(alone.max_pool(alone.conv(alone.x, 4))), 3, true);
  CHECK(convolutions_of(alone.net) == Names{"Conv", "MaxPool (joined)", "MaxPool", "Conv"});
}

}  // namespace
}  // namespace tenon::sdk_test
