// SPDX-License-Identifier: Apache-2.0
#include "sdk_channels_last_testing.h"

#include <tenon/sdk/backend.h>
#include <tenon/sdk/strided.h>

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

}  // namespace

tenon_status query_plain(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<images_spec, plain_rows>(host, out_info);
}
tenon_status query_last(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<images_spec, last_rows>(host, out_info);
}
tenon_status query_either(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<images_spec, either_rows>(host, out_info);
}
tenon_status query_mixed(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<images_spec, mixed_rows>(host, out_info);
}
tenon_status query_fixed(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<images_spec, fixed_rows>(host, out_info);
}

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

std::uint32_t check(Net& net, std::uint32_t fusion, tenon_backend_query_fn counted) {
  std::vector<std::vector<Floats>> all;
  std::uint32_t kernels = 0;
  for (const tenon_backend_query_fn query : {&query_plain, &query_last, &query_either, &query_mixed}) {
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

}  // namespace tenon::sdk_test
