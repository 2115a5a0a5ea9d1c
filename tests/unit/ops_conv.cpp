// SPDX-License-Identifier: Apache-2.0
// Results of the forms of convolution and of its gradients.
#include <cmath>
#include <functional>

#include "ops_testing.h"

namespace tenon::test {
namespace {

/// Small integers: sums of their products are exact.
Tensor numbers(const Shape& shape, int start) {
  return generated(shape, [&](int i) { return (i * 7 + start) % 5 - 2; });
}

std::vector<std::vector<double>> values_of(const std::vector<Tensor>& inputs, const Functions& functions,
                                           const std::string& device = "reference:0") {
  std::vector<std::vector<double>> results;
  for (const Tensor& t : results_of(inputs, functions, device)) results.push_back(doubles(t));
  return results;
}

}  // namespace

TEST_CASE("conv_input_gradient_uses_filter: two convolutions in sequence") {
  const Shape x{2, 2, 6, 5}, w1{3, 2, 3, 3}, w2{2, 3, 2, 3};
  const std::vector<Tensor> inputs{numbers(x, 0), numbers(w1, 1), numbers(w2, 3)};
  const auto loss = [](const std::vector<Value>& v) {
    ops::ConvOptions first, second;
    first.same = true;
    second.strides = {2, 1};
    const Value y = ops::conv(ops::conv(v[0], v[1], {}, first), v[2], {}, second);
    return ops::reduce_sum(ops::mul(y, y.graph().constant(numbers(y.shape(), 2))));
  };
  for (const std::string device : devices) {
    CAPTURE(device);
    const auto gradient = values_of(
        inputs, [&](const auto& v) { return gradients(loss(v), v); }, device);
    // The loss is linear in each operand: a step of 1 in an element changes it by exactly the gradient.
    const double before = values_of(inputs, [&](const auto& v) { return std::vector<Value>{loss(v)}; })[0][0];
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      for (std::int64_t i = 0; i < inputs[k].count(); i += 5) {
        std::vector<Tensor> moved = inputs;
        moved[k] = numbers(inputs[k].shape(), std::vector<int>{0, 1, 3}[k]);
        moved[k].data<double>()[i] += 1;
        const double after = values_of(moved, [&](const auto& v) { return std::vector<Value>{loss(v)}; })[0][0];
        CAPTURE(k);
        CAPTURE(i);
        CHECK(gradient[k][static_cast<std::size_t>(i)] == doctest::Approx(after - before));
      }
    }
  }
}

TEST_CASE("conv1d of (N, C, 1, L) equals that of (N, C, L), and channels last equals channels first") {
  ops::ConvOptions options;
  options.strides = {2};
  options.dilations = {2};
  options.padding = {{1, 3}};
  options.groups = 2;
  const Tensor x = numbers({3, 4, 11}, 1), w = numbers({6, 2, 3}, 2), b = numbers({6}, 0);
  const auto results = values_of({x, w, b}, [&](const auto& v) {
    const Value line = ops::conv1d(v[0], v[1], v[2], options);
    const Value flat = ops::conv1d(ops::reshape(v[0], Shape{3, 4, 1, 11}), v[1], v[2], options);
    ops::ConvOptions last = options;
    last.channels_last = true;
    const Value turned = ops::transpose(ops::conv1d(ops::transpose(v[0], {0, 2, 1}), v[1], v[2], last), {0, 2, 1});
    return std::vector<Value>{line, ops::reshape(flat, line.shape()), turned};
  });
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE("conv equals im2col and a product, its transpose a product and col2im") {
  ops::ConvOptions options;
  options.strides = {2, 1};
  options.padding = {{1, 0}, {0, 2}};
  const std::vector<Tensor> inputs{numbers({2, 3, 6, 5}, 1), numbers({4, 3, 3, 2}, 2), numbers({2, 4, 3, 6}, 0)};
  const auto results = values_of(inputs, [&](const auto& v) {
    const Value matrix = ops::reshape(v[1], Shape{4, 18});
    const Value y = ops::conv(v[0], v[1], {}, options), product = ops::matmul(matrix, ops::im2col(v[0], {3, 2}, options));
    const Value x = ops::conv_transpose(v[2], v[1], {}, options);
    const Value columns = ops::matmul(ops::transpose(matrix, {1, 0}), ops::reshape(v[2], Shape{2, 4, 18}));
    return std::vector<Value>{y, product, x, ops::col2im(columns, {6, 5}, {3, 2}, options)};
  });
  CHECK(results[0] == results[1]);
  CHECK(results[2] == results[3]);
}

}  // namespace tenon::test
