// SPDX-License-Identifier: Apache-2.0
// sdk_testing_products.cpp - the matrix products of the test backends: with epilogues, and one that packs.
#include <cmath>
#include <stdexcept>
#include <string>

#include "sdk_testing_kernels.h"

namespace tenon::sdk_test {
namespace {

template <class T>
T activated(sdk::Activation activation, T x) {
  switch (activation.kind) {
    case sdk::Activation::relu:
      return x > 0 ? x : T(0);
    case sdk::Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case sdk::Activation::tanh:
      return std::tanh(x);
    default:
      return x;
  }
}
/// `at`: the index of the result.
template <class T>
T finished(const sdk::Call& call, T result, std::int64_t column, std::int64_t at) {
  if (call.epilogue.bias != nullptr) result += call.epilogue.bias->as<const T>()[column];
  result = activated(call.epilogue.activation, result);
  if (call.epilogue.relu_result != nullptr && !(call.epilogue.relu_result->as<const T>()[at] > 0)) result = 0;
  return result;
}
/// Matrices only; b(k, j) is element (k, j) of the right side.
template <class T, class Right>
void product(const sdk::Call& call, Right b) {
  const sdk::Operand& a = call.inputs[0];
  const std::int64_t m = call.outputs[0].shape[0], n = call.outputs[0].shape[1], depth = a.shape[1];
  const T* left = call.input<T>(0);
  T* y = call.output<T>(0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += left[i * a.strides[0] + k * a.strides[1]] * b(k, j);
      if (call.has_input(2)) sum += call.input<T>(2)[j];
      y[i * n + j] = finished(call, sum, j, i * n + j);
    }
  }
}
template <class T>
void multiply(const sdk::Call& call) {
  const sdk::Operand& b = call.inputs[1];
  product<T>(call, [&](std::int64_t k, std::int64_t j) { return call.input<T>(1)[k * b.strides[0] + j * b.strides[1]]; });
}
template <class T>
void matmul(const sdk::Call& call) {
  note();
  multiply<T>(call);
}
/// Like one launch, in no order that a test could rely on.
void multiply_together(const sdk::Call* calls, std::uint32_t count) {
  note();
  if (probe.fail_together) throw sdk::Error(TENON_OUT_OF_MEMORY, "no room for products");
  for (std::uint32_t i = count; i-- > 0;) multiply<float>(calls[i]);
}
bool is_small(const sdk::Call& call) {
  return call.inputs[0].count <= 64;
}
/// The packed right side is its transpose followed by a marker.
template <class T>
void gemm(const sdk::Call& call) {
  note();
  const sdk::Operand& b = call.inputs[1];
  if (call.packed != nullptr && call.packed[1] != nullptr) {
    const T* packed = static_cast<const T*>(call.packed[1]);
    const std::int64_t depth = b.shape[0];
    if (reinterpret_cast<std::uintptr_t>(packed) % 64 != 0 || packed[b.count] != T(4711)) throw std::logic_error("gemm: not my packing");
    product<T>(call, [&](std::int64_t k, std::int64_t j) { return packed[j * depth + k]; });
  } else {
    product<T>(call, [&](std::int64_t k, std::int64_t j) { return call.input<T>(1)[k * b.strides[0] + j * b.strides[1]]; });
  }
}
std::size_t gemm_pack_size(const sdk::Call& call, std::uint32_t input) {
  if (call.host.table() == nullptr) probe.no_traits_host = true;
  return input == 1 ? static_cast<std::size_t>(call.inputs[1].count + 1) * sizeof(float) : 0;
}
std::string gemm_pack_form(const sdk::Call&, std::uint32_t) {
  return "transposed";
}
std::size_t gemm_scratch(const sdk::Call& call) {
  return call.packed != nullptr && call.packed[1] != nullptr ? 0 : probe.unpacked_scratch.load();
}
void gemm_pack(const sdk::Call& call, std::uint32_t input, void* out_packed) {
  ++probe.packs;
  const sdk::Operand& b = call.inputs[input];
  const std::int64_t depth = b.shape[0], n = b.shape[1];
  auto* packed = static_cast<float*>(out_packed);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < depth; ++k) {
      packed[j * depth + k] = call.input<float>(input)[k * b.strides[0] + j * b.strides[1]];
      if (probe.fail_pack) throw std::runtime_error("gemm: cannot pack");
    }
  }
  packed[b.count] = 4711;
}

}  // namespace

TENON_KERNEL_WITH(matmul, (sdk::Traits{.strided = true, .epilogue = true}), float)
/// Sums the columns of b too.
template <class T>
void gemm_with_sums(const sdk::Call& call) {
  note();
  multiply<T>(call);
  if (!call.has_output(1)) return;
  const sdk::Operand& b = call.inputs[1];
  for (std::int64_t j = 0; j < b.shape[1]; ++j) {
    T sum = 0;
    for (std::int64_t k = 0; k < b.shape[0]; ++k) sum += call.input<T>(1)[k * b.strides[0] + j * b.strides[1]];
    call.output<T>(1)[j] = sum;
  }
}

namespace together {
TENON_KERNEL_WITH(
    matmul,
    (sdk::Traits{
        .strided = true, .epilogue = true, .epilogue_relu_grad = true, .run_together = multiply_together, .together_when = is_small}),
    float)
TENON_KERNEL_WITH(gemm_with_sums, (sdk::Traits{.strided = true, .epilogue_relu_grad = true, .column_sums = is_small}), float)
}  // namespace together
TENON_KERNEL_WITH(gemm,
                  (sdk::Traits{.strided = true,
                               .epilogue = true,
                               .activations = sdk::activation_bit(sdk::Activation::relu),
                               .scratch = gemm_scratch,
                               .pack_size = gemm_pack_size,
                               .pack = gemm_pack,
                               .pack_form = gemm_pack_form}),
                  float)

}  // namespace tenon::sdk_test
