// SPDX-License-Identifier: Apache-2.0
// Weights of recurrent layers in the orders of other libraries.
#include <doctest/doctest.h>

#include <string>

#include <tenon/error.h>
#include <tenon/recurrent.h>

#include "testing.h"

using namespace tenon;

namespace {

constexpr std::int64_t units = 2, features = 3;

std::int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

Tensor counted(const Shape& shape, float first) {
  Tensor t = Tensor::empty(DType::f32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

/// The names of the gates as a library stacks them, two rows each: "iofc".
Tensor letters(const std::string& order) {
  std::vector<float> codes;
  for (const char letter : order) codes.insert(codes.end(), {static_cast<float>(letter), static_cast<float>(letter)});
  return Tensor::of(codes, {static_cast<std::int64_t>(codes.size())});
}

}  // namespace

TEST_CASE("recurrent weights: gates are reordered to the libraries' orders") {
  struct Row {
    RecurrentCell cell;
    GateOrder order;
    const char* gates;
  };
  const Row rows[] = {{RecurrentCell::lstm, GateOrder::onnx, "iofc"},  {RecurrentCell::lstm, GateOrder::torch, "ifco"},
                      {RecurrentCell::lstm, GateOrder::keras, "ifco"}, {RecurrentCell::lstm, GateOrder::cudnn, "ifco"},
                      {RecurrentCell::gru, GateOrder::onnx, "zrh"},    {RecurrentCell::gru, GateOrder::torch, "rzh"},
                      {RecurrentCell::gru, GateOrder::keras, "zrh"},   {RecurrentCell::gru, GateOrder::cudnn, "rzh"},
                      {RecurrentCell::rnn, GateOrder::onnx, "h"},      {RecurrentCell::rnn, GateOrder::torch, "h"}};
  for (const Row& from : rows) {
    for (const Row& to : rows) {
      if (from.cell != to.cell) continue;
      CAPTURE(from.gates);
      CAPTURE(to.gates);
      CHECK(equal(reorder_gates(letters(from.gates), 0, from.cell, from.order, to.order), letters(to.gates)));
    }
  }
}

TEST_CASE("recurrent weights: those of PyTorch and cuDNN round-trip") {
  for (const RecurrentCell cell : {RecurrentCell::rnn, RecurrentCell::gru, RecurrentCell::lstm}) {
    const std::int64_t rows = gates_of(cell) * units;
    const TorchWeights forward{counted({rows, features}, 0), counted({rows, units}, 100), counted({rows}, 200), counted({rows}, 300)};
    const TorchWeights backward{counted({rows, features}, 400), counted({rows, units}, 500), counted({rows}, 600), counted({rows}, 700)};
    const RecurrentWeights weights = from_torch(cell, {forward, backward});
    CHECK(weights.w.shape() == Shape{2, rows, features});
    CHECK(weights.r.shape() == Shape{2, rows, units});
    CHECK(weights.b.shape() == Shape{2, 2 * rows});
    const std::vector<TorchWeights> back = to_torch(cell, weights);
    REQUIRE(back.size() == 2);
    for (const bool second : {false, true}) {
      const TorchWeights &expected = second ? backward : forward, &got = back[second ? 1 : 0];
      CHECK(equal(got.weight_ih, expected.weight_ih));
      CHECK(equal(got.weight_hh, expected.weight_hh));
      CHECK(equal(got.bias_ih, expected.bias_ih));
      CHECK(equal(got.bias_hh, expected.bias_hh));
    }
    const RecurrentWeights bare = from_torch(cell, {{forward.weight_ih, forward.weight_hh, {}, {}}});
    CHECK(!bare.b.defined());
    CHECK(!to_torch(cell, bare)[0].bias_ih.defined());
  }
}

TEST_CASE("recurrent weights: those of Keras round-trip") {
  for (const RecurrentCell cell : {RecurrentCell::rnn, RecurrentCell::gru, RecurrentCell::lstm}) {
    const std::int64_t columns = gates_of(cell) * units;
    const Shape bias = cell == RecurrentCell::gru ? Shape{2, columns} : Shape{columns};
    const KerasWeights keras{counted({features, columns}, 0), counted({units, columns}, 100), counted(bias, 200)};
    const RecurrentWeights weights = from_keras(cell, {keras});
    CHECK(weights.w.shape() == Shape{1, columns, features});
    // element (i, j) of a kernel is element (j, i) of w, except for the order of gates
    CHECK(weights.w.select(0, 0).select(0, 0).to_vector<float>() == keras.kernel.select(1, 0).to_vector<float>());
    const KerasWeights back = to_keras(cell, weights)[0];
    CHECK(equal(back.kernel, keras.kernel));
    CHECK(equal(back.recurrent_kernel, keras.recurrent_kernel));
    CHECK(equal(back.bias, keras.bias));
  }
  // a GRU that resets before its product has one bias, that of the input product
  const RecurrentWeights plain = from_keras(RecurrentCell::gru, {{counted({features, 6}, 0), counted({units, 6}, 0), counted({6}, 1)}});
  CHECK(plain.b.to_vector<float>() == std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0});
  // the two biases of PyTorch's lstm are one in Keras
  const RecurrentWeights both =
      from_torch(RecurrentCell::rnn, {{counted({2, 3}, 0), counted({2, 2}, 0), counted({2}, 1), counted({2}, 10)}});
  CHECK(to_keras(RecurrentCell::rnn, both)[0].bias.to_vector<float>() == std::vector<float>{11, 13});
}

TEST_CASE("recurrent weights: what does not fit is reported") {
  CHECK_ERROR("from_torch: expected 1 or 2 directions, got 0", from_torch(RecurrentCell::lstm, {}));
  CHECK_ERROR("from_torch: expected weight_ih f32(8,3), got f32(6,3)",
              from_torch(RecurrentCell::lstm, {{counted({6, 3}, 0), counted({8, 2}, 0), {}, {}}}));
  CHECK_ERROR("from_torch: expected bias_hh f32(6), got none",
              from_torch(RecurrentCell::gru, {{counted({6, 3}, 0), counted({6, 2}, 0), counted({6}, 0), {}}}));
  CHECK_ERROR("from_keras: expected bias f32(8), got f32(2,8)",
              from_keras(RecurrentCell::lstm, {{counted({3, 8}, 0), counted({2, 8}, 0), counted({2, 8}, 0)}}));
  CHECK_ERROR("rnn: expected r f32(1,2,2), got f32(1,3,2)",
              to_torch(RecurrentCell::rnn, {counted({1, 2, 3}, 0), counted({1, 3, 2}, 0), {}}));
  CHECK_ERROR("reorder_gates: expected a multiple of the 4 gates of lstm on axis 0, got f32(6,3)",
              reorder_gates(counted({6, 3}, 0), 0, RecurrentCell::lstm, GateOrder::torch, GateOrder::onnx));
}
