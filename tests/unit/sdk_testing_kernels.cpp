// SPDX-License-Identifier: Apache-2.0
// sdk_testing_kernels.cpp - the elementwise kernels of the test backends, those of shape ops, reductions and steps.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>

#include <tenon/sdk/error.h>
#include <tenon/sdk/strided.h>

#include "sdk_testing_kernels.h"

namespace tenon::sdk_test {
namespace {

template <class T, class Function>
void unary(const sdk::Call& call, Function f) {
  note();
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = f(x[at[0]]); });
}
template <class T, class Function>
void binary(const sdk::Call& call, Function f) {
  note();
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  T* y = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = f(a[at[0]], b[at[1]]); });
}

template <class T>
void add(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
void sub(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return static_cast<T>(a - b); });
}
template <class T>
void mul(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return static_cast<T>(a * b); });
}
template <class T>
void neg(const sdk::Call& call) {
  unary<T>(call, [](T x) { return static_cast<T>(-x); });
}
template <class T>
void relu(const sdk::Call& call) {
  unary<T>(call, [](T x) { return x > 0 ? x : T(0); });
}
template <class T>
void sigmoid(const sdk::Call& call) {
  probe.math = call.math;
  probe.deterministic = call.deterministic ? 1 : 0;
  unary<T>(call, [](T x) { return 1 / (1 + std::exp(-x)); });
}
void sigmoids(const sdk::Call*, std::uint32_t) {
  throw std::logic_error("sigmoid: kernels in place do not run together");
}
/// Reads its input as dense, so a missing copy gives wrong results.
template <class T>
void tanh(const sdk::Call& call) {
  note();
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) call.output<T>(0)[i] = std::tanh(call.input<T>(0)[i]);
}
/// Along the last axis, through scratch memory that it fills to the end.
template <class T>
void softmax(const sdk::Call& call) {
  note();
  const auto [rows, n] = sdk::as_rows(call.inputs[0]);
  if (n == 0 || rows == 0) return;
  T* row = static_cast<T*>(call.scratch);
  if (row == nullptr || reinterpret_cast<std::uintptr_t>(row) % 64 != 0) probe.bad_scratch = true;
  probe.scratch_at = reinterpret_cast<std::uintptr_t>(row);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T peak = *std::max_element(x, x + n);
    T total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += row[i] = std::exp(x[i] - peak);
    for (std::int64_t i = 0; i < n; ++i) y[i] = row[i] / total;
  }
}
std::size_t softmax_scratch(const sdk::Call& call) {
  if (call.host.table() == nullptr) probe.no_traits_host = true;
  return static_cast<std::size_t>(sdk::as_rows(call.inputs[0]).n) * sizeof(float);
}
template <class T>
void relu_grad(const sdk::Call& call) {
  binary<T>(call, [](T dy, T y) { return y > 0 ? dy : T(0); });
}
/// Only copies, after the gradient of a relu if there is one.
template <class T>
void log_softmax(const sdk::Call& call) {
  call.has_input(1) ? relu_grad<T>(call) : unary<T>(call, [](T x) { return x; });
}
const char* refuse_vectors(const sdk::Call& call) {
  if (call.host.table() == nullptr) probe.no_traits_host = true;
  return call.inputs[0].rank == 1 ? "vectors are not served" : nullptr;
}
template <class T>
void div(const sdk::Call& call) {
  note();
  switch (probe.fail_div.load()) {
    case 1:
      throw sdk::Error(TENON_CANCELLED, "div: stopped");
    case 2:
      throw std::runtime_error("div: runtime trouble");
    case 3:
      throw 3;
    case 4:
      throw std::bad_alloc();
    case 5:
      call.host.parallel_for(1000, 1, [](std::int64_t begin, std::int64_t) {
        if (begin == 0) throw sdk::Error(TENON_INTERNAL, "div: a range failed");
      });
      break;
    default:
      break;
  }
  binary<T>(call, [](T a, T b) { return static_cast<T>(a / b); });
}

template <class T>
void copy_elements(const sdk::Call& call) {
  note();
  const sdk::Operand& x = call.inputs[0];
  const T* from = call.input<T>(0);
  T* y = call.output<T>(0);
  const std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
  sdk::for_each_element(x.shape, x.rank, strides, [&](std::int64_t i, const auto& at) { y[i] = from[at[0]]; });
}
template <class T>
void reshape(const sdk::Call& call) {
  copy_elements<T>(call);
}
template <class T>
void flatten(const sdk::Call& call) {
  copy_elements<T>(call);
}
template <class T>
void transpose(const sdk::Call& call) {
  note();
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& y = call.outputs[0];
  std::array<sdk::Strides, 1> strides{};
  for (std::uint32_t d = 0; d < y.rank; ++d) strides[0][d] = call.inputs[0].strides[attributes.axes[d]];
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { call.output<T>(0)[i] = call.input<T>(0)[at[0]]; });
}
template <class T>
void expand(const sdk::Call& call) {
  unary<T>(call, [](T x) { return x; });
}
float wide(float x) {
  return x;
}
float wide(sdk::BFloat16 x) {
  const std::uint32_t bits = std::uint32_t{x.bits} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// To f64, f32 and (cut off, not rounded) bf16.
template <class T>
void cast(const sdk::Call& call) {
  note();
  const tenon_dtype to = call.attr<tenon_attributes_cast>().to;
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) {
    const float x = wide(call.input<T>(0)[i]);
    if (to == TENON_DTYPE_F64) call.output<double>(0)[i] = static_cast<double>(x);
    if (to == TENON_DTYPE_F32) call.output<float>(0)[i] = x;
    if (to != TENON_DTYPE_BF16) continue;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    call.output<sdk::BFloat16>(0)[i].bits = static_cast<std::uint16_t>(bits >> 16);
  }
}

template <class T>
void reduce_sum(const sdk::Call& call) {
  note();
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& x = call.inputs[0];
  const sdk::Operand& y = call.outputs[0];
  std::array<sdk::Strides, 2> strides{sdk::strides_of(x), {}};
  std::uint32_t kept = 0;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    const bool reduced = std::find(attributes.axes, attributes.axes + attributes.count, d) != attributes.axes + attributes.count;
    if (!reduced) strides[1][d] = y.strides[kept];
    if (!reduced || attributes.keepdims != 0) ++kept;
  }
  std::fill(call.output<T>(0), call.output<T>(0) + y.count, T(0));
  sdk::for_each_element(x.shape, x.rank, strides,
                        [&](std::int64_t, const auto& at) { call.output<T>(0)[at[1]] += call.input<T>(0)[at[0]]; });
}

/// lr, then (w, g) or (w, g, v) groups. All of a group's operands are read before it is written, groups from the last to the first.
template <class T>
void sgd_step(const sdk::Call& call) {
  note();
  const auto momentum = static_cast<T>(call.attr<tenon_attributes_sgd>().momentum);
  const auto lr = static_cast<T>(*call.input<double>(0));
  const std::uint32_t in = momentum != 0 ? 3 : 2, out = in - 1;
  for (std::uint32_t group = (call.input_count - 1) / in; group-- > 0;) {
    const std::uint32_t first = 1 + group * in;
    for (std::int64_t i = 0; i < call.inputs[first].count; ++i) {
      const T w = call.input<T>(first)[i], g = call.input<T>(first + 1)[i];
      const T step = momentum != 0 ? momentum * call.input<T>(first + 2)[i] + g : g;
      if (momentum != 0 && call.has_output(group * out + 1)) call.output<T>(group * out + 1)[i] = step;
      if (call.has_output(group * out)) call.output<T>(group * out)[i] = w - lr * step;
    }
  }
}

/// Not the loss: a sum that shows which optional operands were present.
template <class T>
void softmax_cross_entropy(const sdk::Call& call) {
  note();
  T total = call.has_input(2) ? call.input<T>(2)[0] : T(0);
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) total += call.input<T>(0)[i];
  *call.output<T>(0) = total;
  if (call.has_output(1)) std::fill(call.output<T>(1), call.output<T>(1) + call.outputs[1].count, T(7));
}

constexpr sdk::Traits any_strides{.strided = true};
constexpr sdk::Traits elementwise{.strided = true, .in_place = true, .elementwise = true};

}  // namespace

TENON_KERNEL_WITH(add, elementwise, float, std::int64_t)
TENON_KERNEL_WITH(sub, any_strides, float)
TENON_KERNEL_WITH(mul, elementwise, float)
TENON_KERNEL_WITH(neg, elementwise, float)
TENON_KERNEL_WITH(relu, elementwise, float)
TENON_KERNEL_WITH(sigmoid, elementwise, float)
TENON_KERNEL(tanh, float)
namespace together {
TENON_KERNEL_WITH(sigmoid, (sdk::Traits{.in_place = true, .run_together = sigmoids}), float)
}
TENON_KERNEL_WITH(softmax, (sdk::Traits{.in_place = true, .scratch = softmax_scratch}), float)
TENON_KERNEL_WITH(log_softmax, (sdk::Traits{.refuse = refuse_vectors, .relu_grad = true}), float)
TENON_KERNEL_WITH(relu_grad, elementwise, float)
TENON_KERNEL_WITH(div, any_strides, float)
TENON_KERNEL_WITH(reshape, any_strides, float, std::int64_t, sdk::BFloat16)
TENON_KERNEL_WITH(flatten, any_strides, float)
TENON_KERNEL_WITH(transpose, any_strides, float, sdk::BFloat16)
TENON_KERNEL_WITH(expand, any_strides, float)
TENON_KERNEL_WITH(cast, (sdk::Traits{.in_place = false}), float, sdk::BFloat16)
TENON_KERNEL_WITH(reduce_sum, any_strides, float)
TENON_KERNEL_WITH(sgd_step, (sdk::Traits{.in_place = true}), float)
TENON_KERNEL(softmax_cross_entropy, float)

namespace dense {
namespace {
template <class T>
void transpose(const sdk::Call& call) {
  sdk_test::transpose<T>(call);
}
}  // namespace
TENON_KERNEL(transpose, float)
}  // namespace dense

}  // namespace tenon::sdk_test
