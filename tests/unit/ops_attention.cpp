// SPDX-License-Identifier: Apache-2.0
// Results of attention against separate products and softmax, and of rotary positions against rotated complex numbers.
#include <cmath>
#include <complex>
#include <functional>

#include "ops_testing.h"

namespace tenon::test {
namespace {

/// Values in (-1, 1) with a long period.
Tensor numbers(const Shape& shape, int start) {
  return generated(shape, [&](int i) { return std::sin(i * 1.7 + start); });
}

/// The result of a function of f64 tensors, and the gradients of the weighted sum of its result.
std::vector<Tensor> result_and_gradients(const std::string& device, const std::vector<Tensor>& inputs, const Function& function) {
  const auto with_gradients = [&](const std::vector<Value>& operands) {
    const Value y = function(operands);
    std::vector<Value> results = gradients(ops::reduce_sum(ops::mul(y, y.graph().constant(numbers(y.shape(), 11)))), operands);
    results.insert(results.begin(), y);
    return results;
  };
  return results_of(inputs, with_gradients, device);
}

void check_equal(const std::vector<Tensor>& expected, const std::vector<Tensor>& got) {
  REQUIRE(expected.size() == got.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    const Tensor a = expected[k].to_host(), b = got[k].to_host();
    REQUIRE(a.shape() == b.shape());
    double worst = 0;
    for (std::int64_t i = 0; i < a.count(); ++i) worst = std::max(worst, std::fabs(a.data<double>()[i] - b.data<double>()[i]));
    CHECK(worst < 1e-12);
  }
}

/// Repeats the keys for every head of q.
Value by_parts(Value q, Value k, Value v, Value mask, bool causal) {
  const std::int64_t queries = q.shape()[2], keys = k.shape()[2];
  Value scores = ops::mul(ops::matmul(q, ops::transpose(k, {0, 1, 3, 2})), 1 / std::sqrt(static_cast<double>(q.shape()[3])));
  if (mask.present()) scores = ops::add(scores, mask);
  if (causal) {
    Tensor seen = Tensor::zeros(DType::f64, {queries, keys});
    for (std::int64_t i = 0; i < seen.count(); ++i) seen.data<double>()[i] = i % keys > i / keys ? -1e30 : 0;
    scores = ops::add(scores, q.graph().constant(seen));
  }
  return ops::matmul(ops::softmax(scores), v);
}

}  // namespace

TEST_CASE("attention: result and gradients, also of the mask, match products and softmax") {
  for (const std::string device : devices) {
    CAPTURE(device);
    for (const bool causal : {false, true}) {
      CAPTURE(causal);
      for (const Shape& mask : {Shape{70, 90}, Shape{2, 1, 1, 90}, Shape{3, 70, 1}}) {
        CAPTURE(mask.str());
        const std::vector<Tensor> inputs{numbers({2, 3, 70, 4}, 1), numbers({2, 3, 90, 4}, 2), numbers({2, 3, 90, 5}, 3), numbers(mask, 4)};
        check_equal(result_and_gradients(device, inputs, [&](const auto& x) { return by_parts(x[0], x[1], x[2], x[3], causal); }),
                    result_and_gradients(device, inputs, [&](const auto& x) {
                      ops::AttentionOptions options;
                      options.mask = x[3];
                      options.causal = causal;
                      return ops::attention(x[0], x[1], x[2], options);
                    }));
      }
    }
  }
}

TEST_CASE("attention: heads that share keys match heads with equal keys") {
  const auto shared = [](const std::vector<Value>& x, bool together) {
    const auto repeated = [&](Value v) {
      const Shape s = v.shape();
      return together ? v
                      : ops::reshape(ops::expand(ops::reshape(v, Shape{s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], 3, s[2], s[3]}),
                                     Shape{s[0], s[1] * 3, s[2], s[3]});
    };
    return ops::attention(x[0], repeated(x[1]), repeated(x[2]));
  };
  const std::vector<Tensor> inputs{numbers({2, 6, 5, 4}, 1), numbers({2, 2, 7, 4}, 2), numbers({2, 2, 7, 3}, 3)};
  for (const std::string device : devices) {
    CAPTURE(device);
    check_equal(result_and_gradients(device, inputs, [&](const auto& x) { return shared(x, false); }),
                result_and_gradients(device, inputs, [&](const auto& x) { return shared(x, true); }));
  }
}

TEST_CASE("rotary_embedding: pairs are rotated complex numbers, and the gradient rotates back") {
  const std::int64_t length = 5, half = 3;
  Tensor cosines = Tensor::zeros(DType::f64, {length, half}), sines = Tensor::zeros(DType::f64, {length, half});
  for (std::int64_t i = 0; i < length * half; ++i) {
    cosines.data<double>()[i] = std::cos(0.3 * static_cast<double>(i));
    sines.data<double>()[i] = std::sin(0.3 * static_cast<double>(i));
  }
  for (const bool interleaved : {false, true}) {
    CAPTURE(interleaved);
    for (const Shape& shape : {Shape{length, 2 * half}, Shape{2, 3, length, 2 * half}, Shape{1, 2, 1, 1, 1, 1, length, 2 * half}}) {
      CAPTURE(shape.str());
      const Tensor x = numbers(shape, 1);
      Tensor expected = numbers(shape, 1);
      Tensor slope = numbers(shape, 11);  // the weights of the loss
      for (std::int64_t i = 0; i < x.count() / 2; ++i) {
        const std::int64_t line = i / half, k = i % half, s = line % length;
        const std::int64_t first = line * 2 * half + (interleaved ? 2 * k : k), second = first + (interleaved ? 1 : half);
        const auto turn = [&](const Tensor& from, Tensor& to, double direction) {
          const std::complex<double> turned = std::complex(from.data<double>()[first], from.data<double>()[second]) *
                                              std::polar(1.0, direction * 0.3 * static_cast<double>(s * half + k));
          to.data<double>()[first] = turned.real();
          to.data<double>()[second] = turned.imag();
        };
        turn(x, expected, 1);
        turn(numbers(shape, 11), slope, -1);
      }
      check_equal({expected, slope}, result_and_gradients("reference:0", {x}, [&](const auto& v) {
                    Graph& g = v[0].graph();
                    return ops::rotary_embedding(v[0], g.constant(cosines), g.constant(sines), interleaved);
                  }));
    }
  }
}

}  // namespace tenon::test
