// SPDX-License-Identifier: Apache-2.0
// Images with channels last: transposed where a chain of such kernels begins and ends, and not in between.
//
// The same graph runs on three backends: "plain", whose image kernels use the graph's order, "last", whose kernels request channels last,
// and "either", whose kernels request it if the number of channels is odd. All values are small integers and products are taken modulo 7,
// so results have the same bits in any order.
#include "sdk_testing.h"

#include <tenon/sdk/backend.h>
#include <tenon/sdk/strided.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace tenon::sdk_test {

extern const sdk::Kernel kernel_add, kernel_neg, kernel_relu, kernel_sigmoid, kernel_reshape, kernel_flatten, kernel_expand,
    kernel_reduce_sum, kernel_sub, kernel_cast;

namespace {

/// The offset of element (n, c, i, j) of an image, in the graph's order or with channels last. Rank 3 has only j = 0.
struct Image {
  Image(const sdk::Operand& operand, bool last) {
    const std::uint32_t r = operand.rank;
    REQUIRE(operand.dense);
    n = operand.shape[0];
    c = operand.shape[last ? r - 1 : 1];
    h = operand.shape[last ? 1 : 2];
    w = r == 3 ? 1 : operand.shape[last ? 2 : 3];
    channel = last ? 1 : h * w;
    column = last ? c : 1;
    row = column * w;
  }
  std::int64_t at(std::int64_t in, std::int64_t ic, std::int64_t i, std::int64_t j) const {
    return in * c * h * w + ic * channel + i * row + j * column;
  }
  std::int64_t n, c, h, w, channel, row, column;
};

template <class T>
T modulo(T x) {
  return std::fmod(x, T(7));
}

/// Windows of the kernel's size without padding, strides of 1. b is a separate operand; the epilogue is added.
template <class T, bool last, bool x_last = last>
void convolve(const sdk::Call& call) {
  ++probe.kernels;
  const Image x(call.inputs[0], x_last), y(call.outputs[0], last);
  const std::int64_t* k = call.inputs[1].shape;
  const std::int64_t kh = k[2], kw = call.inputs[1].rank == 3 ? 1 : k[3];
  const T* w = call.input<T>(1);
  const sdk::Epilogue& epilogue = call.epilogue;
  if (epilogue.bias != nullptr) REQUIRE(epilogue.bias->count == y.c);
  if (epilogue.residual != nullptr) {
    REQUIRE(epilogue.residual->data != call.outputs[0].data);
    REQUIRE(epilogue.residual->dense);
    REQUIRE(epilogue.residual->count == call.outputs[0].count);
  }
  for (std::int64_t n = 0; n < y.n; ++n) {
    for (std::int64_t o = 0; o < y.c; ++o) {
      for (std::int64_t i = 0; i < y.h; ++i) {
        for (std::int64_t j = 0; j < y.w; ++j) {
          T sum = call.has_input(2) ? call.input<T>(2)[o] : T(0);
          for (std::int64_t c = 0; c < x.c; ++c) {
            for (std::int64_t p = 0; p < kh; ++p) {
              for (std::int64_t q = 0; q < kw; ++q) {
                sum += call.input<T>(0)[x.at(n, c, i + p, j + q)] * w[((o * x.c + c) * kh + p) * kw + q];
              }
            }
          }
          sum = modulo(sum);
          const std::int64_t to = y.at(n, o, i, j);
          if (epilogue.bias != nullptr) sum += epilogue.bias->as<const T>()[o];
          if (epilogue.residual != nullptr) sum += epilogue.residual->as<const T>()[to];
          if (epilogue.activation == sdk::Activation::relu) sum = sum > 0 ? sum : T(0);
          if (epilogue.activation == sdk::Activation::sigmoid) sum = 1 / (1 + std::exp(-sum));
          if (epilogue.activation == sdk::Activation::tanh) sum = modulo(sum);
          call.output<T>(0)[to] = sum;
        }
      }
    }
  }
}
/// Windows of 1 x 2 or, in one dimension, 2; indices give which of the two it was.
template <class T, bool last>
void pool(const sdk::Call& call) {
  ++probe.kernels;
  const Image x(call.inputs[0], last), y(call.outputs[0], last);
  const bool flat = call.inputs[0].rank == 3;
  for (std::int64_t n = 0; n < y.n; ++n) {
    for (std::int64_t c = 0; c < y.c; ++c) {
      for (std::int64_t i = 0; i < y.h; ++i) {
        for (std::int64_t j = 0; j < y.w; ++j) {
          const T a = call.input<T>(0)[x.at(n, c, i, j)], b = call.input<T>(0)[x.at(n, c, i + flat, j + !flat)];
          call.output<T>(0)[y.at(n, c, i, j)] = std::max(a, b);
          if (call.has_output(1)) call.output<std::int64_t>(1)[y.at(n, c, i, j)] = a < b;
        }
      }
    }
  }
}

std::int64_t axis_of(const sdk::Call& call) {
  return call.attr<tenon_attributes_axis>().axis;
}
/// Walks the elements of a part of `whole`, which is dense.
template <class T, class Move>
void along_axis(const sdk::Operand& whole, const sdk::Operand& part, std::int64_t axis, std::int64_t first, Move move) {
  const auto all = sdk::around_axis(whole, axis);
  const std::int64_t size = part.shape[axis];
  const std::array<sdk::Strides, 1> strides{sdk::strides_of(part)};
  sdk::for_each_element(part.shape, part.rank, strides, [&](std::int64_t i, const auto& at) {
    const std::int64_t inner = i % all.inner, k = i / all.inner % size, outer = i / all.inner / size;
    move(whole.as<T>()[(outer * all.n + first + k) * all.inner + inner], part.as<T>()[at[0]]);
  });
}
template <class T>
void concat(const sdk::Call& call) {
  ++probe.kernels;
  std::int64_t first = 0;
  for (std::uint32_t i = 0; i < call.input_count; first += call.inputs[i++].shape[axis_of(call)]) {
    along_axis<T>(call.outputs[0], call.inputs[i], axis_of(call), first, [](T& whole, T& part) { whole = part; });
  }
}
template <class T>
void split(const sdk::Call& call) {
  ++probe.kernels;
  std::int64_t first = 0;
  for (std::uint32_t i = 0; i < call.output_count; first += call.outputs[i++].shape[axis_of(call)]) {
    along_axis<T>(call.inputs[0], call.outputs[i], axis_of(call), first, [](T& whole, T& part) { part = whole; });
  }
}
/// y at (before + index) = x; the rest is `value`.
template <class T>
void pad(const sdk::Call& call) {
  ++probe.kernels;
  const auto& attributes = call.attr<tenon_attributes_pad>();
  const sdk::Operand& x = call.inputs[0];
  const sdk::Operand& y = call.outputs[0];
  std::fill(y.as<T>(), y.as<T>() + y.count, static_cast<T>(attributes.value));
  std::int64_t first = 0;
  for (std::uint32_t d = 0; d < x.rank; ++d) first += attributes.before[d] * y.strides[d];
  const std::array<sdk::Strides, 2> strides{sdk::strides_of(x), sdk::strides_of(y)};
  sdk::for_each_element(x.shape, x.rank, strides, [&](std::int64_t, const auto& at) { y.as<T>()[first + at[1]] = x.as<T>()[at[0]]; });
}
template <class T>
void slice(const sdk::Call& call) {
  ++probe.kernels;
  const auto& attributes = call.attr<tenon_attributes_slice>();
  const sdk::Operand& x = call.inputs[0];
  const sdk::Operand& y = call.outputs[0];
  std::int64_t first = 0;
  std::array<sdk::Strides, 1> strides{};
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    first += attributes.starts[d] * x.strides[d];
    strides[0][d] = attributes.steps[d] * x.strides[d];
  }
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { y.as<T>()[i] = x.as<T>()[first + at[0]]; });
}

template <class T>
void mul(const sdk::Call& call) {
  ++probe.kernels;
  sdk::for_each_element<2>(
      call, [&](std::int64_t i, const auto& at) { call.output<T>(0)[i] = modulo(call.input<T>(0)[at[0]] * call.input<T>(1)[at[1]]); });
}
/// Stands in for Tanh. Reads its input as dense, so a missing copy gives wrong results.
template <class T>
void tanh(const sdk::Call& call) {
  ++probe.kernels;
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) call.output<T>(0)[i] = modulo(call.input<T>(0)[i]);
}

/// Stands in for Softmax: the sum along the axis, and the element on top. Dense operands.
template <class T>
void softmax(const sdk::Call& call) {
  ++probe.kernels;
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], axis_of(call));
  const T* x = call.input<T>(0);
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) {
    const std::int64_t first = i / (n * inner) * n * inner + i % inner;
    T sum = x[i];
    for (std::int64_t k = 0; k < n; ++k) sum += x[first + k * inner];
    call.output<T>(0)[i] = modulo(sum);
  }
}

constexpr sdk::Traits strided{.strided = true};

}  // namespace

namespace plain {
namespace {
template <class T>
constexpr auto conv = convolve<T, false>;
template <class T>
constexpr auto max_pool = pool<T, false>;
}  // namespace
TENON_KERNEL(conv, float)
TENON_KERNEL(max_pool, float)
TENON_KERNEL_WITH(mul, (sdk::Traits{.strided = true, .in_place = true, .elementwise = true}), float)
TENON_KERNEL(tanh, float)
TENON_KERNEL_WITH(concat, strided, float)
TENON_KERNEL(split, float)
TENON_KERNEL(softmax, float)
TENON_KERNEL(pad, float)
TENON_KERNEL_WITH(slice, strided, float)
}  // namespace plain

namespace last {
namespace {
template <class T>
constexpr auto conv = convolve<T, true>;
template <class T>
constexpr auto max_pool = pool<T, true>;
/// In the graph's form: weights with channels first.
const char* refuse(const sdk::Call& call) {
  return call.inputs[0].shape[1] != call.inputs[1].shape[1] ? "as many channels as the weights have are expected" : nullptr;
}
/// In the kernel's form.
std::size_t scratch(const sdk::Call& call) {
  REQUIRE(call.inputs[0].shape[call.inputs[0].rank - 1] == call.inputs[1].shape[1]);
  return 64;
}
/// For any dtype, because the second output needs a Transpose of i64.
template <class T>
void transpose(const sdk::Call& call) {
  ++probe.kernels;
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& y = call.outputs[0];
  std::array<sdk::Strides, 1> strides{};
  for (std::uint32_t d = 0; d < y.rank; ++d) strides[0][d] = call.inputs[0].strides[attributes.axes[d]];
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { call.output<T>(0)[i] = call.input<T>(0)[at[0]]; });
}
}  // namespace
TENON_KERNEL_WITH(conv,
                  (sdk::Traits{.epilogue = true, .residual = true, .channels_last = {0b1, 0b1}, .scratch = scratch, .refuse = refuse}),
                  float)
TENON_KERNEL_WITH(max_pool, (sdk::Traits{.channels_last = {0b1, 0b11}}), float)
TENON_KERNEL_WITH(transpose, strided, float, sdk::BFloat16, std::int64_t)
}  // namespace last

namespace either {
namespace {
/// In the graph's form.
bool has_odd_channels(const sdk::Call& call) {
  REQUIRE(call.device != nullptr);
  return call.inputs[0].shape[1] % 2 == 1;
}
template <class T>
void conv(const sdk::Call& call) {
  REQUIRE(call.device != nullptr);
  if (!call.channels_last && call.inputs[0].rank > 2) REQUIRE(call.epilogue.bias == nullptr);
  call.channels_last ? convolve<T, true>(call) : convolve<T, false>(call);
}
template <class T>
void max_pool(const sdk::Call& call) {
  call.channels_last ? pool<T, true>(call) : pool<T, false>(call);
}
}  // namespace
TENON_KERNEL_WITH(conv,
                  (sdk::Traits{.epilogue = true, .residual = true, .channels_last = {0b1, 0b1}, .channels_last_when = has_odd_channels}),
                  float)
TENON_KERNEL_WITH(max_pool, (sdk::Traits{.channels_last = {0b1, 0b11}, .channels_last_when = has_odd_channels}), float)
}  // namespace either

namespace mixed {
namespace {
/// x is in the graph's form if it has an even number of channels, y never.
bool has_even_channels(const sdk::Call& call) {
  return call.inputs[1].shape[1] % 2 == 0;
}
std::uint32_t graph_layout(const sdk::Call& call) {
  REQUIRE(call.inputs[0].shape[1] == call.inputs[1].shape[1]);
  return has_even_channels(call) ? 1 : 0;
}
template <class T>
void conv(const sdk::Call& call) {
  REQUIRE(call.channels_last == (call.inputs[0].rank > 2));
  has_even_channels(call) ? convolve<T, true, false>(call) : convolve<T, true>(call);
}
}  // namespace
TENON_KERNEL_WITH(conv, (sdk::Traits{.epilogue = true, .residual = true, .channels_last = {0b1, 0b1}, .graph_layout_inputs = graph_layout}),
                  float)
}  // namespace mixed

namespace {

#define TENON_SHARED_ROWS                                                                                             \
  {TENON_OP_Add, 14, 0, &kernel_add}, {TENON_OP_Sub, 14, 0, &kernel_sub}, {TENON_OP_Mul, 14, 0, &plain::kernel_mul},  \
      {TENON_OP_Neg, 13, 0, &kernel_neg}, {TENON_OP_Cast, 13, 0, &kernel_cast}, {TENON_OP_Relu, 14, 0, &kernel_relu}, \
      {TENON_OP_Sigmoid, 13, 0, &kernel_sigmoid}, {TENON_OP_Tanh, 13, 0, &plain::kernel_tanh},                        \
      {TENON_OP_ReduceSum, 11, 0, &kernel_reduce_sum}, {TENON_OP_Reshape, 14, 0, &kernel_reshape},                    \
      {TENON_OP_Flatten, 13, 0, &kernel_flatten}, {TENON_OP_Expand, 13, 0, &kernel_expand},                           \
      {TENON_OP_Concat, 13, 0, &plain::kernel_concat}, {TENON_OP_Split, 13, 0, &plain::kernel_split},                 \
      {TENON_OP_Softmax, 13, 0, &plain::kernel_softmax}, {TENON_OP_Pad, 13, 0, &plain::kernel_pad}, {                 \
    TENON_OP_Slice, 13, 0, &plain::kernel_slice                                                                       \
  }

constexpr sdk::KernelRow plain_rows[] = {
    TENON_SHARED_ROWS,
    {TENON_OP_Transpose, 13, 0, &last::kernel_transpose},
    {TENON_OP_Conv, 11, 0, &plain::kernel_conv},
    {TENON_OP_MaxPool, 12, 0, &plain::kernel_max_pool},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow last_rows[] = {
    TENON_SHARED_ROWS,
    {TENON_OP_Transpose, 13, 0, &last::kernel_transpose},
    {TENON_OP_Conv, 11, 0, &last::kernel_conv},
    {TENON_OP_MaxPool, 12, 0, &last::kernel_max_pool},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow either_rows[] = {
    TENON_SHARED_ROWS,
    {TENON_OP_Transpose, 13, 0, &last::kernel_transpose},
    {TENON_OP_Conv, 11, 0, &either::kernel_conv},
    {TENON_OP_MaxPool, 12, 0, &either::kernel_max_pool},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow mixed_rows[] = {
    TENON_SHARED_ROWS,
    {TENON_OP_Transpose, 13, 0, &last::kernel_transpose},
    {TENON_OP_Conv, 11, 0, &mixed::kernel_conv},
    {TENON_OP_MaxPool, 12, 0, &last::kernel_max_pool},
    {TENON_OP_NONE, 0, 0, nullptr},
};
constexpr sdk::KernelRow fixed_rows[] = {
    {TENON_OP_Conv, 11, 0, &last::kernel_conv},
    {TENON_OP_NONE, 0, 0, nullptr},
};

const sdk::BackendSpec& images_spec() {
  static constexpr sdk::BackendSpec spec{"images", "1", "tests", "kernels of images", nullptr, 1, 0, {}, [](sdk::Host host) {
                                           return sdk::make_cpu_backend(host, "kernels of images");
                                         }};
  return spec;
}
constexpr tenon_backend_query_fn query_plain = sdk::query<images_spec, plain_rows>;
constexpr tenon_backend_query_fn query_last = sdk::query<images_spec, last_rows>;
constexpr tenon_backend_query_fn query_either = sdk::query<images_spec, either_rows>;
constexpr tenon_backend_query_fn query_mixed = sdk::query<images_spec, mixed_rows>;
constexpr tenon_backend_query_fn query_fixed = sdk::query<images_spec, fixed_rows>;

tenon_attributes_conv conv_attributes() {
  return tenon_attributes_conv{.struct_size = sizeof(tenon_attributes_conv), .groups = 1};
}
tenon_attributes_window window_attributes() {
  return tenon_attributes_window{.struct_size = sizeof(tenon_attributes_window)};
}

Floats some(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(std::uniform_int_distribution<int>(-3, 3)(random));
  return values;
}

/// Builds a net of images, value by value.
struct Images {
  Net net;
  const Shape& shape(std::uint32_t v) const { return net.values[v].shape; }
  std::uint32_t result(Shape shape, bool out) { return out ? net.output(std::move(shape)) : net.internal(std::move(shape)); }

  /// Kernels of size 1 or 1 x 1.
  std::uint32_t conv(std::uint32_t x, std::int64_t channels, bool out = false) {
    Shape weights = shape(x), to = shape(x);
    std::fill(weights.begin() + 2, weights.end(), 1);
    weights[0] = to[1] = channels;
    const auto count = weights[0] * weights[1];
    const auto w = net.constant(weights, some(count, static_cast<std::uint32_t>(net.values.size())));
    const auto y = result(std::move(to), out);
    net.node(TENON_OP_Conv, {x, w}, {y}, conv_attributes());
    return y;
  }
  std::uint32_t max_pool(std::uint32_t x, bool out = false) {
    Shape to = shape(x);
    --to.back();
    const auto y = result(std::move(to), out);
    net.node(TENON_OP_MaxPool, {x}, {y}, window_attributes());
    return y;
  }
  std::uint32_t apply(tenon_op op, std::vector<std::uint32_t> operands, bool out = false) {
    Shape to;
    for (const std::uint32_t v : operands) {
      const Shape& other = shape(v);
      if (other.size() > to.size()) to.insert(to.begin(), other.size() - to.size(), 1);
      for (std::size_t d = 0; d < other.size(); ++d) {
        std::int64_t& size = to[d + to.size() - other.size()];
        size = size == 1 ? other[d] : size;
      }
    }
    const auto y = result(std::move(to), out);
    net.node(op, std::move(operands), {y});
    return y;
  }
};

/// Runs the net on the four backends, which must agree; returns the number of kernels of `counted`.
std::uint32_t check(Net& net, std::uint32_t fusion = TENON_FUSION_FULL, tenon_backend_query_fn counted = query_last) {
  std::vector<std::vector<Floats>> all;
  std::uint32_t kernels = 0;
  for (const tenon_backend_query_fn query : {query_plain, query_last, query_either, query_mixed}) {
    std::vector<Floats>& results = all.emplace_back();
    Session session(1, query);
    Run run(session, net, options(fusion));
    for (std::uint32_t v = 0; v < net.values.size(); ++v) {
      const std::uint32_t kind = net.values[v].kind;
      if (kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER) run.set(v, some(net.values[v].count(), v + 1000));
    }
    probe.kernels = 0;
    run();
    if (fusion == TENON_FUSION_OFF) CHECK(static_cast<std::uint32_t>(probe.kernels) == run.info.kernel_count);
    for (std::uint32_t v = 0; v < net.values.size(); ++v) {
      if (net.values[v].kind == TENON_VALUE_OUTPUT && net.values[v].dtype == TENON_DTYPE_F32) results.push_back(run.get(v));
    }
    if (query == counted) kernels = run.info.kernel_count;
  }
  CHECK(all[0] == all[1]);
  CHECK(all[0] == all[2]);
  CHECK(all[0] == all[3]);
  return kernels;
}

TEST_CASE("sdk: a single convolution is transposed on input and on output") {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{2, 3, 4}}) {
    Images images;
    images.conv(images.net.input(shape), 4, true);
    CHECK(check(images.net) == 3);
    CHECK(check(images.net, TENON_FUSION_OFF) == 3);
  }
}

TEST_CASE("sdk: an instance whose kernel does not request channels last keeps the graph's order") {
  for (const std::int64_t channels : {2, 3}) {
    Images images;
    const auto x = images.conv(images.net.input({2, channels, 4, 5}), channels);
    images.conv(images.apply(TENON_OP_Relu, {x}), 4, true);
    CHECK(check(images.net, TENON_FUSION_FULL, query_either) == (channels == 2 ? 2 : 4));
  }
}

TEST_CASE("sdk: a kernel may read one image in the graph's form and write another with channels last") {
  for (const std::int64_t channels : {2, 3}) {
    Images images;
    const auto x = images.conv(images.net.input({2, channels, 4, 5}), 3);
    images.conv(images.apply(TENON_OP_Relu, {x}), 4, true);
    CHECK(check(images.net, TENON_FUSION_FULL, query_mixed) == (channels == 2 ? 3 : 4));
  }
}

TEST_CASE_FIXTURE(Images, "sdk: images with channels first take no bias along their last dimension") {
  const auto y = conv(net.input({2, 2, 4, 5}), 4);
  apply(TENON_OP_Add, {y, net.parameter({5})}, true);
  CHECK(check(net, TENON_FUSION_FULL, query_either) == 2);
}

TEST_CASE_FIXTURE(Images, "sdk: a chain of layers is transposed once on input and once on output") {
  const auto x = net.input({2, 3, 4, 5});
  const auto bias = net.parameter({4, 1, 1});
  auto y = conv(x, 4);
  y = apply(TENON_OP_Add, {y, bias});
  y = apply(TENON_OP_Relu, {y});
  y = conv(y, 6);
  y = max_pool(y);
  conv(y, 2, true);
  CHECK(check(net) == 6);  // transpose, convolution with bias and activation, convolution, pool, convolution, transpose
  CHECK(check(net, TENON_FUSION_OFF) == 8);
  CHECK(check(net, TENON_FUSION_ELEMENTWISE) == 7);
}

TEST_CASE("sdk: a bias may have any shape that broadcasts along the channels") {
  for (const Shape& shape : {Shape{4, 1, 1}, Shape{1, 4, 1, 1}}) {
    Images images;
    auto y = images.conv(images.net.input({2, 3, 4, 5}), 4);
    y = images.apply(TENON_OP_Add, {images.net.input(shape), y});
    images.apply(TENON_OP_Relu, {y}, true);
    CHECK(check(images.net) == 3);
  }
  for (const Shape& shape : {Shape{5}, Shape{4, 5}, Shape{}, Shape{1}, Shape{1, 1, 4, 5}, Shape{2, 4, 1, 1}}) {
    Images images;
    auto y = images.conv(images.net.input({2, 3, 4, 5}), 4);
    images.apply(TENON_OP_Add, {y, images.net.input(shape)}, true);
    CHECK(check(images.net) == 4);
  }
}

TEST_CASE_FIXTURE(Images, "sdk: elementwise ops between convolutions work on channels last") {
  auto y = conv(net.input({2, 3, 4, 5}), 4);
  const auto gate = net.input({2, 4, 1, 1}), scalar = net.input({}), row = net.input({5});
  const auto a = apply(TENON_OP_Mul, {y, gate});
  const auto b = apply(TENON_OP_Sigmoid, {apply(TENON_OP_Add, {a, scalar})});
  const auto c = apply(TENON_OP_Add, {apply(TENON_OP_Mul, {b, y}), row});
  conv(c, 2, true);
  const std::uint32_t kernels = check(net, TENON_FUSION_OFF);
  CHECK(kernels == 9);  // two transposes, two convolutions, five ops
  CHECK(check(net) < kernels);
}

TEST_CASE_FIXTURE(Images, "sdk: an operand is transposed once for all its readers") {
  const auto x = net.input({2, 3, 4, 5}), p = net.input({2, 4, 4, 5});
  const auto y = conv(x, 4), z = conv(x, 4);
  const auto a = apply(TENON_OP_Mul, {y, p}), b = apply(TENON_OP_Mul, {p, z});
  conv(apply(TENON_OP_Add, {a, b}), 3, true);
  CHECK(check(net, TENON_FUSION_OFF) == 9);  // x, p and the result transposed; three convolutions, three ops
}

TEST_CASE("sdk: outputs are transposed back, and other readers use them with channels last") {
  Images images;
  const auto y = images.conv(images.net.input({2, 3, 4, 5}), 4, true);
  const auto z = images.apply(TENON_OP_Relu, {y}, true);
  images.conv(z, 2, true);
  CHECK(check(images.net, TENON_FUSION_OFF) == 7);  // x, y, z and the last result transposed; two convolutions, one op
  Images flat;
  const auto t = flat.conv(flat.net.input({2, 3, 4, 5}), 4);
  flat.net.node(TENON_OP_Flatten, {t}, {flat.net.output({2, 80})}, axis(1));
  CHECK(check(flat.net) == 3);
}

TEST_CASE("sdk: an image of one pixel or one channel has the same layout either way") {
  for (const Shape& shape : {Shape{2, 3, 1, 1}, Shape{2, 1, 4, 5}}) {
    Images images;
    const auto y = images.conv(images.net.input(shape), shape[1]);
    images.apply(TENON_OP_Neg, {images.conv(y, shape[1])}, false);
    const auto r = images.net.output({y == 0 ? 0 : shape[0] * shape[1] * shape[2] * shape[3]});
    images.net.node(TENON_OP_Reshape, {y}, {r});
    CHECK(check(images.net, TENON_FUSION_OFF) == 4);  // only the four nodes
  }
}

TEST_CASE("sdk: reductions use channels last with remapped axes") {
  const auto reduce = [](std::initializer_list<std::int64_t> list, bool keepdims, Shape to) {
    Images images;
    const auto y = images.conv(images.net.input({2, 3, 4, 5}), 6);
    const auto r = images.net.internal(std::move(to));
    images.net.node(TENON_OP_ReduceSum, {y}, {r}, axes(list, keepdims));
    images.apply(TENON_OP_Neg, {r}, true);
    return check(images.net, TENON_FUSION_OFF);
  };
  CHECK(reduce({2, 3}, false, {2, 6}) == 4);
  CHECK(reduce({2, 3}, true, {2, 6, 1, 1}) == 4);
  CHECK(reduce({0, 2, 3}, false, {6}) == 4);
  CHECK(reduce({1}, false, {2, 4, 5}) == 4);
  CHECK(reduce({1}, true, {2, 1, 4, 5}) == 4);
  CHECK(reduce({3}, false, {2, 6, 4}) == 4);  // channels first: read as stored
  CHECK(reduce({3}, true, {2, 6, 4, 1}) == 5);
  CHECK(reduce({0}, false, {6, 4, 5}) == 4);
  CHECK(reduce({0, 1, 2, 3}, false, {}) == 4);
}

TEST_CASE_FIXTURE(Images, "sdk: a gradient that is broadcast over an image is broadcast with channels last") {
  const auto y = conv(net.input({2, 3, 4, 5}), 6);
  const auto g = net.input({2, 6, 1, 1}), wide = net.internal({2, 6, 4, 5});
  net.node(TENON_OP_Expand, {g}, {wide});
  conv(apply(TENON_OP_Mul, {wide, y}), 2, true);
  CHECK(check(net, TENON_FUSION_OFF) == 5);  // two transposes, two convolutions, one op
}

TEST_CASE_FIXTURE(Images, "sdk: an operand made only for convolutions is transposed before it is made") {
  const auto x = net.input({2, 1, 4, 5}), shift = net.input({1, 1, 1});
  const auto a = apply(TENON_OP_Mul, {x, shift});
  conv(apply(TENON_OP_Relu, {a}), 1, true);
  CHECK(check(net, TENON_FUSION_OFF) == 3);  // one channel in, one out: nothing is transposed
}

TEST_CASE("sdk: images are sliced and concatenated with channels last") {
  Images images;
  Net& net = images.net;
  const auto x = images.net.input({2, 3, 4, 5});
  const auto a = images.conv(x, 4), b = images.conv(x, 2);
  const auto joined = net.internal({2, 6, 4, 5});
  net.node(TENON_OP_Concat, {a, b}, {joined}, axis(1));
  const auto first = net.internal({2, 6, 4, 2}), second = net.internal({2, 6, 4, 3});
  net.node(TENON_OP_Split, {joined}, {first, second}, axis(3));
  tenon_attributes_pad around{.struct_size = sizeof around, .value = 2};
  around.before[1] = 1;
  around.before[3] = 2;
  const auto padded = net.internal({2, 8, 4, 5});
  net.node(TENON_OP_Pad, {first}, {padded}, around);
  tenon_attributes_slice part{.struct_size = sizeof part};
  for (std::int64_t& step : part.steps) step = 1;
  part.starts[1] = 5;
  part.steps[1] = -2;
  part.starts[2] = 1;
  const auto taken = net.internal({2, 3, 3, 3});
  net.node(TENON_OP_Slice, {second}, {taken}, part);
  const auto shares = net.internal({2, 8, 4, 5});
  net.node(TENON_OP_Softmax, {padded}, {shares}, axis(1));
  images.conv(shares, 2, true);
  images.conv(taken, 2, true);
  CHECK(check(net) == 12);  // one transpose in, two out, four convolutions, four parts and the softmax
}

TEST_CASE("sdk: indices of a pool are transposed back only if they are read") {
  for (const bool read : {false, true}) {
    Images images;
    Net& net = images.net;
    const auto y = net.output({2, 3, 4, 4});
    const auto at = read ? net.output({2, 3, 4, 4}, TENON_DTYPE_I64) : net.internal({2, 3, 4, 4}, TENON_DTYPE_I64);
    net.node(TENON_OP_MaxPool, {net.input({2, 3, 4, 5})}, {y, at}, window_attributes());
    CHECK(check(net) == (read ? 4 : 3));
  }
}

TEST_CASE("sdk: f16 and bf16 keep channels last between the conversions") {
  std::vector<std::uint16_t> results[2];
  for (const bool is_last : {false, true}) {
    Images images;
    Net& net = images.net;
    const auto x = net.input({2, 3, 4, 5}, {}, TENON_DTYPE_BF16), y = net.output({2, 2, 4, 5}, TENON_DTYPE_BF16);
    const auto a = net.internal({2, 4, 4, 5}, TENON_DTYPE_BF16), b = net.internal({2, 4, 4, 5}, TENON_DTYPE_BF16);
    const auto v = net.input({4, 3, 1, 1}, {}, TENON_DTYPE_BF16), w = net.input({2, 4, 1, 1}, {}, TENON_DTYPE_BF16);
    net.node(TENON_OP_Conv, {x, v}, {a}, conv_attributes());
    net.node(TENON_OP_Relu, {a}, {b});
    net.node(TENON_OP_Conv, {b, w}, {y}, conv_attributes());
    Session session(1, is_last ? query_last : query_plain);
    Run run(session, net, options(TENON_FUSION_OFF));
    CHECK(run.info.kernel_count == (is_last ? 13 : 11));  // three nodes, eight conversions, and two transposes
    for (const std::uint32_t source : {x, v, w}) {
      const Floats values = some(net.values[source].count(), source);
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &values[i], sizeof bits);
        run.data<std::uint16_t>(source)[i] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
    run();
    results[is_last].assign(run.data<std::uint16_t>(y), run.data<std::uint16_t>(y) + net.values[y].count());
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("sdk: an input that has channels last is used as it is") {
  Images images;
  const auto x = images.net.input({2, 3, 4, 5}, {60, 1, 15, 3});
  images.conv(x, 4, true);
  CHECK(check(images.net) == 2);
  Images turned;
  const auto w = turned.net.input({2, 4, 5, 3}), v = turned.net.internal({2, 3, 4, 5});
  turned.net.node(TENON_OP_Transpose, {w}, {v}, axes({0, 3, 1, 2}));
  const auto y = turned.conv(v, 4), back = turned.net.output({2, 4, 5, 4});
  turned.net.node(TENON_OP_Transpose, {y}, {back}, axes({0, 2, 3, 1}));
  CHECK(check(turned.net) == 2);
}

TEST_CASE("sdk: a donated image is read before it is overwritten") {
  Images images;
  const auto x = images.net.input({2, 3, 4, 5});
  const auto y = images.conv(x, 3, true);
  images.apply(TENON_OP_Mul, {x, images.apply(TENON_OP_Neg, {x})}, true);
  images.net.donate(x, y);
  check(images.net);
  check(images.net, TENON_FUSION_OFF);
  Images pixel;
  const auto p = pixel.net.input({2, 3, 1, 1});
  const auto q = pixel.conv(pixel.apply(TENON_OP_Neg, {pixel.conv(p, 3)}), 3, true);
  pixel.net.donate(p, q);
  check(pixel.net);
}

std::string first_algorithm(Net& net, const std::string& stem) {
  Session session(1, query_last);
  Run run(session, net);
  ErrorText error;
  tenon_profile_record records[16] = {};
  std::uint32_t count = 0;
  REQUIRE(session.table->profile->read(run.plan, 0, records, sizeof records[0], 16, &count, error) == TENON_OK);
  for (std::uint32_t i = 0; i < std::min(count, 16u); ++i) {
    if (std::string(records[i].algorithm).rfind(stem + "+", 0) == 0) return records[i].algorithm;
  }
  return "none";
}

TEST_CASE("sdk: bias, residual and activation that follow a convolution are one call with it, whatever their order") {
  for (const bool bias_first : {true, false}) {
    Images images;
    const auto x = images.conv(images.net.input({2, 3, 4, 5}), 4);
    const auto bias = images.net.parameter({4, 1, 1});
    auto y = images.conv(images.apply(TENON_OP_Relu, {x}), 4);
    if (bias_first) y = images.apply(TENON_OP_Add, {y, bias});
    y = images.apply(TENON_OP_Add, {x, y});
    if (!bias_first) y = images.apply(TENON_OP_Add, {bias, y});
    images.apply(TENON_OP_Relu, {y}, true);
    CHECK(check(images.net) == 5);  // transpose, convolution, relu, convolution with all, transpose
    CHECK(first_algorithm(images.net, "Conv") == "Conv+bias+residual+relu");
  }
}

TEST_CASE_FIXTURE(Images, "sdk: of two added convolutions one has the other's result as its residual") {
  const auto x = net.input({2, 3, 4, 5});
  const auto a = conv(x, 4), b = conv(x, 4);
  apply(TENON_OP_Relu, {apply(TENON_OP_Add, {a, b})}, true);
  CHECK(check(net) == 4);  // transpose, two convolutions, transpose
  CHECK(first_algorithm(net, "Conv") == "Conv+residual+relu");
}

TEST_CASE("sdk: a residual may be made after the product is listed, or be an input that is overwritten later") {
  Images images;
  Net& net = images.net;
  const auto x = net.input({2, 3, 4, 5}), p = net.input({2, 4, 4, 5});
  const auto y = images.conv(x, 4), r = images.apply(TENON_OP_Tanh, {images.apply(TENON_OP_Neg, {p})});
  images.conv(images.apply(TENON_OP_Add, {y, r}), 2, true);
  const auto next = images.apply(TENON_OP_Relu, {p}, true);
  net.donate(p, next);
  check(net);
  Images direct;
  const auto q = direct.net.input({2, 5, 1, 1}), z = direct.conv(direct.net.input({2, 3, 1, 1}), 5);
  direct.apply(TENON_OP_Add, {z, q}, true);
  direct.net.donate(q, direct.apply(TENON_OP_Neg, {q}, true));
  CHECK(check(direct.net) == 2);  // convolution with residual, and the writer of the donated residual
}

TEST_CASE("sdk: broadcast, doubled or otherwise read operands are no residual") {
  Images wide;
  const auto g = wide.net.input({2, 4, 1, 1});
  wide.apply(TENON_OP_Add, {wide.conv(wide.net.input({2, 3, 4, 5}), 4), g}, true);
  CHECK(check(wide.net) == 4);
  Images doubled;
  const auto y = doubled.conv(doubled.net.input({2, 3, 4, 5}), 4);
  doubled.apply(TENON_OP_Add, {y, y}, true);
  CHECK(check(doubled.net) == 4);
  Images thrice;  // one residual, the next sum is separate
  const auto x = thrice.net.input({2, 3, 4, 5});
  const auto a = thrice.conv(x, 4), b = thrice.apply(TENON_OP_Add, {thrice.conv(x, 4), a});
  thrice.apply(TENON_OP_Add, {b, a}, true);
  CHECK(check(thrice.net) == 5);
}

TEST_CASE("sdk: a backend that cannot transpose rejects kernels with channels last") {
  Session session(1, query_fixed);
  Images images;
  images.conv(images.net.input({2, 3, 4, 5}), 4, true);
  tenon_answer answer{};
  ErrorText error;
  const tenon_plan_options given = options();
  REQUIRE(session.table->supports(session.device, &images.net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK);
  CHECK(answer.supported == 0);
  CHECK(std::string(answer.text) == "Conv: takes images with their channels last, but there is no Transpose kernel to convert them");
}

TEST_CASE("sdk: refuse is called with the graph's form") {
  Session session(1, query_last);
  Images images;
  Net& net = images.net;
  const auto w = net.constant({4, 5, 1, 1}, Floats(20));
  net.node(TENON_OP_Conv, {net.input({2, 3, 4, 5}), w}, {net.output({2, 4, 4, 5})}, conv_attributes());
  tenon_answer answer{};
  ErrorText error;
  const tenon_plan_options given = options();
  REQUIRE(session.table->supports(session.device, &net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK);
  CHECK(std::string(answer.text) == "Conv: as many channels as the weights have are expected");
}

/// Generates random nets of image ops.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  Net make() {
    const bool flat = chance(25);
    const std::int64_t channels = pick(1, 3), h = pick(1, 3), w = pick(2, 4);
    const Shape shape = flat ? Shape{pick(1, 2), channels, w} : Shape{pick(1, 2), channels, h, w};
    for (int i = 0; i < 2; ++i) values_.push_back(chance(80) ? images_.net.input(shape) : images_.net.parameter(shape));
    if (chance(30)) values_.push_back(images_.net.input(shape, strides(shape)));
    const int steps = pick(2, 18);
    for (int i = 0; i < steps; ++i) add_node();
    bool has_output = false;
    for (const Net::Value& value : images_.net.values) has_output = has_output || value.kind == TENON_VALUE_OUTPUT;
    if (!has_output || chance(50)) values_.push_back(images_.apply(TENON_OP_Neg, {values_.back()}, true));
    donate();
    return std::move(images_.net);
  }

 private:
  int pick(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  std::uint32_t any() {
    // Mostly recent values, so that chains occur.
    const int count = static_cast<int>(values_.size());
    return values_[static_cast<std::size_t>(chance(60) ? std::max(0, count - pick(1, 3)) : pick(0, count - 1))];
  }
  bool out() { return chance(12); }
  const Shape& shape(std::uint32_t v) const { return images_.net.values[v].shape; }
  static Strides strides(const Shape& shape) {  // the last dimension outermost
    Strides result(shape.size());
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      result[d] = stride;
      stride *= shape[d];
    }
    return result;
  }
  std::uint32_t add(tenon_op op, std::vector<std::uint32_t> operands, Shape to) {
    const auto y = images_.result(std::move(to), out());
    images_.net.node(op, std::move(operands), {y});
    return y;
  }

  void add_node() {
    const std::uint32_t x = any();
    const Shape from = shape(x);
    const bool image = from.size() == 3 || from.size() == 4;
    Net& net = images_.net;
    switch (image ? pick(0, 14) : pick(3, 6)) {
      case 0:
      case 1:
      case 2:
        return values_.push_back(images_.conv(x, pick(1, 4), out()));
      case 3:
        return values_.push_back(images_.apply(TENON_OP_Relu, {x}, out()));
      case 4: {
        Shape small = from;
        for (std::int64_t& size : small) {
          if (chance(60)) size = 1;
        }
        while (!small.empty() && small.front() == 1 && chance(70)) small.erase(small.begin());
        const auto p = chance(50) ? net.input(small) : net.parameter(small);
        return values_.push_back(images_.apply(chance(60) ? TENON_OP_Add : TENON_OP_Mul, {x, p}, out()));
      }
      case 5: {
        static constexpr tenon_op ops[] = {TENON_OP_Add, TENON_OP_Sub, TENON_OP_Mul};
        std::uint32_t other = x;
        for (int i = 0; i < 6; ++i) {
          const std::uint32_t candidate = any();
          if (shape(candidate) == from && candidate != x) other = candidate;
        }
        return values_.push_back(images_.apply(ops[pick(0, 2)], {x, other}, out()));
      }
      case 6:
        return values_.push_back(images_.apply(TENON_OP_Tanh, {x}, out()));  // needs dense operands
      case 7:
        if (from.back() < 2) return;
        return values_.push_back(images_.max_pool(x, out()));
      case 8: {
        tenon_attributes_axes list = axes({}, chance(60));
        Shape to;
        for (std::size_t d = 0; d < from.size(); ++d) {
          const bool gone = chance(50);
          if (gone) list.axes[list.count++] = static_cast<std::int64_t>(d);
          if (!gone) to.push_back(from[d]);
          if (gone && list.keepdims != 0) to.push_back(1);
        }
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_ReduceSum, {x}, {y}, list);
        return values_.push_back(y);
      }
      case 9: {
        const auto axis_at = static_cast<std::size_t>(pick(0, static_cast<int>(from.size()) - 1));
        const std::uint32_t other = any();
        Shape expected = from, found = shape(other);
        if (found.size() != from.size()) return;
        expected[axis_at] = found[axis_at];
        if (expected != found) return;
        Shape to = from;
        to[axis_at] += found[axis_at];
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_Concat, {x, other}, {y}, axis(static_cast<std::int64_t>(axis_at)));
        return values_.push_back(y);
      }
      case 10: {
        const auto axis_at = static_cast<std::size_t>(pick(0, static_cast<int>(from.size()) - 1));
        if (from[axis_at] < 2) return;
        Shape a = from, b = from;
        a[axis_at] = 1;
        b[axis_at] -= 1;
        const auto first = images_.result(std::move(a), out()), second = images_.result(std::move(b), out());
        net.node(TENON_OP_Split, {x}, {first, second}, axis(static_cast<std::int64_t>(axis_at)));
        values_.push_back(first);
        return values_.push_back(second);
      }
      case 11: {
        tenon_attributes_pad attributes{.struct_size = sizeof attributes, .value = 1};
        Shape to = from;
        for (std::size_t d = 0; d < to.size(); ++d) {
          if (to[d] > 6) continue;
          attributes.before[d] = pick(0, 1);
          to[d] += attributes.before[d] + pick(0, 1);
        }
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_Pad, {x}, {y}, attributes);
        return values_.push_back(y);
      }
      case 12: {
        tenon_attributes_slice attributes{.struct_size = sizeof attributes};
        Shape to = from;
        for (std::size_t d = 0; d < to.size(); ++d) {
          attributes.starts[d] = pick(0, static_cast<int>(from[d]) - 1);
          attributes.steps[d] = chance(30) ? -1 : 1;
          to[d] = attributes.steps[d] > 0 ? from[d] - attributes.starts[d] : attributes.starts[d] + 1;
        }
        const auto y = images_.result(std::move(to), out());
        net.node(TENON_OP_Slice, {x}, {y}, attributes);
        return values_.push_back(y);
      }
      case 13: {
        const auto y = images_.result(from, out());
        net.node(TENON_OP_Softmax, {x}, {y}, axis(pick(0, static_cast<int>(from.size()) - 1)));
        return values_.push_back(y);
      }
      default: {
        Shape to = from;
        for (std::int64_t& size : to) {
          if (size == 1 && chance(60)) size = pick(1, 3);
        }
        return values_.push_back(add(TENON_OP_Expand, {x}, std::move(to)));
      }
    }
  }

  void donate() {
    Net& net = images_.net;
    std::vector<bool> taken(net.values.size(), false);
    for (std::uint32_t o = 0; o < net.values.size(); ++o) {
      if (net.values[o].kind != TENON_VALUE_OUTPUT || !chance(60)) continue;
      for (std::uint32_t i = 0; i < net.values.size(); ++i) {
        const Net::Value& value = net.values[i];
        const bool source = value.kind == TENON_VALUE_INPUT || value.kind == TENON_VALUE_PARAMETER;
        if (!source || taken[i] || value.count() != net.values[o].count()) continue;
        taken[i] = true;
        net.donate(i, o);
        break;
      }
    }
  }

  std::mt19937 random_;
  Images images_;
  std::vector<std::uint32_t> values_;
};

bool same_bits(const Floats& a, const Floats& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float p, float q) { return p == q || (std::isnan(p) && std::isnan(q)); });
}

TEST_CASE("sdk: random nets of images have the same results with channels last") {
  Session plain_session(1, query_plain), last_session(1, query_last), either_session(1, query_either);
  Session* const sessions[] = {&plain_session, &last_session, &either_session};
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Net net = Generator(seed).make();
    for (const std::uint32_t fusion : {TENON_FUSION_FULL, TENON_FUSION_ELEMENTWISE, TENON_FUSION_OFF}) {
      CAPTURE(fusion);
      std::vector<Floats> results[3];
      for (std::size_t s = 0; s < 3; ++s) {
        Run run(*sessions[s], net, options(s > 0 ? fusion : std::uint32_t{TENON_FUSION_OFF}));
        for (std::uint32_t v = 0; v < net.values.size(); ++v) {
          const std::uint32_t kind = net.values[v].kind;
          if (kind == TENON_VALUE_INPUT || kind == TENON_VALUE_PARAMETER) run.set(v, some(net.values[v].count(), v + seed));
        }
        run();
        for (std::uint32_t v = 0; v < net.values.size(); ++v) {
          if (net.values[v].kind == TENON_VALUE_OUTPUT) results[s].push_back(run.get(v));
        }
      }
      for (const std::vector<Floats>& other : {results[1], results[2]}) {
        REQUIRE(results[0].size() == other.size());
        for (std::size_t i = 0; i < other.size(); ++i) REQUIRE(same_bits(results[0][i], other[i]));
      }
    }
  }
}

}  // namespace
}  // namespace tenon::sdk_test
