// SPDX-License-Identifier: Apache-2.0
// onnx/rules/microsoft.cpp - the floating ops of com.microsoft: what ONNX Runtime writes when it saves an optimised graph.
#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/node.h"
#include "onnx/rules.h"
#include "onnx/rules/channels_last.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/microsoft_attention.h"
#include "onnx/rules/pools.h"
#include "onnx/rules/shapes.h"
#include "onnx/rules/windows.h"

namespace tenon::onnx {
namespace {

/// The node as the op of its name in ai.onnx at a version where operands and attributes are the same.
template <std::int64_t version>
void as_in_onnx(Node& node) {
  const Rule* rule = find_rule("", node.op(), version);
  if (rule == nullptr) node.unsupported("Tenon has no such operator");
  rule->apply(node);
}

/// a + b, or a if b is absent.
Value plus(Value a, Value b) {
  return b.present() ? ops::add(a, b) : a;
}

/// Parameters of the activation of a fused op, in order; missing ones have the defaults of the op that was fused.
using ActivationParameters = std::vector<double>;

Value activate(Node& node, Value x, const ActivationParameters& given) {
  const std::string_view name = node.text("activation", "");
  const auto parameter = [&](std::size_t i, double otherwise) { return i < given.size() ? given[i] : otherwise; };
  if (name.empty()) return x;
  if (name == "Relu") return ops::relu(x);
  if (name == "Tanh") return ops::tanh(x);
  if (name == "Sigmoid") return ops::sigmoid(x);
  if (name == "LeakyRelu") return ops::leaky_relu(x, parameter(0, 0.01));
  if (name == "Elu") return ops::elu(x, parameter(0, 1));
  if (name == "HardSigmoid") return ops::clip(ops::add(ops::mul(x, parameter(0, 0.2)), parameter(1, 0.5)), 0, 1);
  if (name == "HardSwish") return ops::hard_swish(x);
  if (name == "Gelu") return ops::gelu(x);
  if (name == "Clip" && given.size() == 2 && given[0] <= given[1]) return ops::clip(x, given[0], given[1]);
  node.unsupported(
      fmt::format("expected a fused activation Relu, Tanh, Sigmoid, LeakyRelu, Elu, HardSigmoid, HardSwish, Gelu or Clip with two bounds, "
                  "got {} with {} parameters: export the model without optimisation",
                  name, given.size()));
}

ActivationParameters listed_parameters(const Node& node) {
  const std::vector<float>& list = node.numbers("activation_params");
  return {list.begin(), list.end()};
}

ActivationParameters named_parameters(const Node& node) {
  ActivationParameters parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!node.has(name)) break;
    parameters.push_back(node.number(name));
  }
  return parameters;
}

void bias_split_gelu(Node& node) {
  const Value x = ops::add(node.input(0), node.input(1));
  const Shape shape = x.shape();
  if (shape.rank() == 0 || shape[shape.rank() - 1] % 2 != 0) node.fail(fmt::format("expected an even last dimension, got {}", shape.str()));
  const std::int64_t half = shape[shape.rank() - 1] / 2;
  const std::vector<Value> halves = ops::split(x, {half, half}, -1);
  node.output(0, ops::mul(halves[0], ops::gelu(halves[1])));
}

void bias_softmax(Node& node) {
  const Value x = ops::add(node.input(0), node.input(1));
  const Shape shape = node.shape(0);
  if (x.shape() != shape) node.fail(fmt::format("expected a bias that broadcasts to {}, got {}", shape.str(), node.shape(1).str()));
  const std::int64_t rank = node.rank(0), axis = node.resolve_axis(node.integer("axis", 1), rank);
  // All dimensions from the axis on are one row.
  node.output(0, axis == rank - 1 ? ops::softmax(x, axis) : ops::reshape(ops::softmax(ops::flatten(x, axis), 1), shape));
}

void bias_dropout(Node& node) {
  if (node.has_input(4) && node.known_integer(4) != 0) {
    node.unsupported("expected training_mode=0, since its random numbers are those of ONNX Runtime: export the model for inference");
  }
  const Value x = ops::add(node.input(0), node.input(1));
  if (node.needs_output(1)) node.output(1, filled(node, Tensor::full(DType::boolean, {}, 1), x.shape()));
  node.output(0, plus(x, node.optional_input(2)));
}

/// LayerNormalization, or RMSNormalization, of the last dimension: the result and its statistics.
std::vector<Value> normalised(Node& node, bool root_mean_square, Value x, Value scale, Value bias) {
  tenon_attributes_layer_norm attributes{};
  attributes.axis = -1;
  attributes.epsilon = node.number("epsilon", 1e-12);
  if (root_mean_square) return node.graph().apply(TENON_OP_RMSNormalization, {x, scale}, Attributes::of(attributes));
  return node.graph().apply(TENON_OP_LayerNormalization, {x, scale, bias}, Attributes::of(attributes));
}

/// The sum of x, skip and bias, normalised. `simplified` is without mean and beta.
template <bool simplified>
void skip_normalization(Node& node) {
  const Value x = node.input(0);
  const Value sum = plus(ops::add(x, node.input(1)), node.optional_input(simplified ? 3 : 4));
  if (sum.shape() != x.shape()) {
    node.fail(fmt::format("expected skip and bias that broadcast to {}, got {}", x.shape().str(), node.shape(1).str()));
  }
  const std::vector<Value> parts = normalised(node, simplified, sum, node.input(2), simplified ? Value() : node.optional_input(3));
  node.output(0, parts[0]);
  if (!simplified && node.needs_output(1)) node.output(1, cast_to(parts[1], DType::f32));
  if (node.needs_output(2)) node.output(2, cast_to(parts.back(), DType::f32));
  node.output(3, sum);
}

void embed_layer_normalization(Node& node) {
  const Value ids = node.input(0), words = node.input(2), positions = node.input(3);
  const Shape shape = ids.shape();
  if (shape.rank() != 2 || words.shape().rank() != 2 || positions.shape().rank() != 2 || positions.shape()[0] < shape[1]) {
    node.fail(fmt::format("expected input_ids (batch, length) and embeddings (count, size) of enough positions, got {}, {} and {}",
                          shape.str(), words.shape().str(), positions.shape().str()));
  }
  const Value at = node.has_input(8) ? ops::embedding(positions, node.input(8)) : ops::slice(positions, 0, 0, shape[1]);
  Value sum = ops::add(ops::embedding(words, ids), at);
  if (node.has_input(1) && node.has_input(4)) sum = ops::add(sum, ops::embedding(node.input(4), node.input(1)));
  node.output(0, normalised(node, false, sum, node.input(5), node.input(6))[0]);
  if (node.needs_output(1)) {
    if (node.has_input(7)) {
      const Value mask = node.input(7);
      const Value words_in_use = ops::cast(ops::equal(mask, node.scalar(mask.dtype(), 1)), DType::i32);
      node.output(1, ops::reduce_sum(words_in_use, {1}));
    } else {
      node.output(1, Tensor::zeros(DType::i32, {shape[0]}));
    }
  }
  node.output(2, sum);
}

/// An operand of a FusedMatMul: with `batch`, its first dimension moves after the batch; with `matrix`, its last two are exchanged.
Value arranged(Value x, bool matrix, bool batch) {
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  if (rank < 2 || (!matrix && !(batch && rank > 2))) return x;
  std::vector<std::int64_t> permutation;
  for (std::int64_t i = 0; i < rank; ++i) permutation.push_back(i);
  if (batch && rank > 2) {
    for (std::int64_t i = 0; i + 2 < rank; ++i) permutation[static_cast<std::size_t>(i)] = i + 1;
    permutation[static_cast<std::size_t>(rank) - 2] = 0;
  }
  if (matrix) std::swap(permutation[static_cast<std::size_t>(rank) - 2], permutation[static_cast<std::size_t>(rank) - 1]);
  return ops::transpose(x, permutation);
}

void fused_matmul(Node& node) {
  const Value a = node.input(0), b = node.input(1);
  const bool trans_a = node.flag("transA"), trans_b = node.flag("transB");
  const double alpha = node.number("alpha", 1);
  Value y;
  if (a.shape().rank() == 2 && b.shape().rank() == 2) {
    y = ops::gemm(a, b, {}, {.trans_a = trans_a, .trans_b = trans_b, .alpha = alpha});
  } else {
    y = ops::matmul(arranged(a, trans_a, node.flag("transBatchA")), arranged(b, trans_b, node.flag("transBatchB")));
    if (alpha != 1) y = ops::mul(y, alpha);
  }
  node.output(0, activate(node, y, named_parameters(node)));
}

void fused_gemm(Node& node) {
  const DType dtype = floating_dtype(node.dtype(0));
  Value c = node.optional_input(2);
  if (c.present()) c = cast_to(c, dtype);
  const ops::GemmOptions options{node.flag("transA"), node.flag("transB"), node.number("alpha", 1), node.number("beta", 1)};
  const Value y = ops::gemm(cast_to(node.input(0), dtype), cast_to(node.input(1), dtype), c, options);
  node.output(0, cast_to(activate(node, y, named_parameters(node)), node.dtype(0)));
}

/// x W + bias with the tanh form of GELU.
void gemm_fast_gelu(Node& node) {
  node.output(0, ops::gelu(plus(ops::matmul(node.input(0), node.input(1)), node.optional_input(2)), true));
}

/// The activation of Conv plus Z, with images (N, C, d...) or (N, d..., C).
template <bool channels_last>
void fused_conv(Node& node) {
  const Value x = node.input(0);
  Value y = convolve(node, channels_last ? to_channels_first(x) : x, node.input(1), node.optional_input(2));
  if (channels_last) y = to_channels_last(y);
  node.output(0, activate(node, plus(y, node.optional_input(3)), listed_parameters(node)));
}

/// MaxPool of 8-bit images (N, d..., C).
void nhwc_max_pool(Node& node) {
  node.output(0, to_channels_last(max_pool(node, to_channels_first(node.input(0)))));
}

/// GroupNorm of x, plus skip and bias in SkipGroupNorm, with images (N, C, H, W) or, by default, (N, H, W, C).
template <bool skip>
void group_norm(Node& node) {
  const Shape shape = node.shape(0);
  if (shape.rank() < 3) node.fail(fmt::format("expected images of rank 3 or more, got {}", shape.str()));
  const bool channels_last = node.flag("channels_last", true);
  const std::int64_t channels = shape[channels_last ? shape.rank() - 1 : 1];
  // One number for each channel, of each sample if there are several rows.
  const auto per_channel = [&](Value x, std::int64_t rows) {
    Shape spread = shape;
    for (std::size_t i = 0; i < spread.rank(); ++i) spread.set(i, 1);
    spread.set(0, rows);
    spread.set(channels_last ? spread.rank() - 1 : 1, channels);
    if (x.shape().count() != spread.count()) {
      node.fail(fmt::format("expected ({},{}), got {}", rows, channels, x.shape().str()));
    }
    return ops::reshape(x, spread);
  };
  Value x = node.input(0);
  if (skip) {
    const Value added = node.input(3);
    x = ops::add(x, added.shape().rank() == 2 ? per_channel(added, added.shape()[0]) : added);
    if (node.has_input(4)) x = ops::add(x, per_channel(node.input(4), 1));
    if (x.shape() != shape) node.fail(fmt::format("expected skip to broadcast to {}, got {}", shape.str(), added.shape().str()));
    node.output(1, x);
  }
  const Value images = channels_last ? to_channels_first(x) : x;
  const Value scale = cast_to(node.input(1), x.dtype()), bias = cast_to(node.input(2), x.dtype());
  Value y = ops::group_norm(images, node.integer("groups"), scale, bias, node.number("epsilon", 1e-5));
  const std::int64_t activation = node.integer("activation");
  if (activation != 0 && activation != 1) node.fail(fmt::format("expected activation 0 (none) or 1 (SiLU), got {}", activation));
  if (activation == 1) y = ops::silu(y);
  node.output(0, channels_last ? to_channels_last(y) : y);
}

void cdist(Node& node) {
  const Value a = node.input(0), b = node.input(1);
  const Shape rows = a.shape(), columns = b.shape();
  if (rows.rank() != 2 || columns.rank() != 2 || rows[1] != columns[1]) {
    node.fail(fmt::format("expected (M, N) and (K, N), got {} and {}", rows.str(), columns.str()));
  }
  const std::string_view metric = node.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") {
    node.unsupported(fmt::format("expected the metric euclidean or sqeuclidean, got {}", metric));
  }
  // |a - b|^2 = |a|^2 - 2 a b + |b|^2, which rounding may make negative
  const Value lengths = ops::reshape(ops::reduce_sum_square(b, {1}), Shape{1, columns[0]});
  const Value product = ops::gemm(a, b, ops::reduce_sum_square(a, {1}, true), {.trans_b = true, .alpha = -2});
  const Value squares = ops::maximum(ops::add(product, lengths), 0);
  node.output(0, metric == "euclidean" ? ops::sqrt(squares) : squares);
}

/// Inverse of matrices of up to 3 rows: the transposed cofactors divided by the determinant.
void inverse(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  const std::size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2]) node.fail(fmt::format("expected square matrices, got {}", shape.str()));
  const std::int64_t n = shape[rank - 1];
  if (n > 3) node.unsupported(fmt::format("expected matrices of up to 3 rows, got {}: invert them before, or solve the system", n));
  if (n < 2) return node.output(0, ops::reciprocal(x));
  const auto dims = static_cast<std::int64_t>(rank);
  Value cofactors;
  if (n == 2) {
    const Tensor signs = Tensor::of<double>({1, -1, -1, 1}, {2, 2});
    cofactors = ops::mul(ops::flip(x, {dims - 2, dims - 1}), node.constant(signs.to(x.dtype())));
  } else {
    // Row i of the cofactors is the vector product of the rows i + 1 and i + 2.
    const Value next = node.constant(Node::integers_tensor({1, 2, 0})), last = node.constant(Node::integers_tensor({2, 0, 1}));
    const Value a = ops::gather(x, next, dims - 2), b = ops::gather(x, last, dims - 2);
    const auto term = [&](Value first, Value second) {
      return ops::mul(ops::gather(a, first, dims - 1), ops::gather(b, second, dims - 1));
    };
    cofactors = ops::sub(term(next, last), term(last, next));
  }
  const auto first_row = [&](Value matrices) { return ops::slice(matrices, dims - 2, 0, 1); };
  const Value determinant = ops::reduce_sum(ops::mul(first_row(x), first_row(cofactors)), {dims - 1}, true);
  std::vector<std::int64_t> transposed;
  for (std::int64_t i = 0; i < dims; ++i) transposed.push_back(i < dims - 2 ? i : 2 * dims - 3 - i);
  node.output(0, ops::div(ops::transpose(cofactors, transposed), determinant));
}

void expand_dims(Node& node) {
  node.output(0, ops::unsqueeze(node.input(0), {node.resolve_axis(node.known_integer(1), node.rank(0) + 1)}));
}

/// Range with a step of 1, which the op of ai.onnx requires as an operand.
void range(Node& node) {
  if (node.has_input(2)) return as_in_onnx<11>(node);
  const double first = node.known_number(0), count = std::ceil(node.known_number(1) - first);
  if (!std::isfinite(first) || !(count < static_cast<double>(max_listed_elements))) {
    node.unsupported(fmt::format("expected a range of at most {} elements, got {}", max_listed_elements, count));
  }
  std::vector<double> elements;
  for (double i = 0; i < count; ++i) elements.push_back(first + i);
  node.output(0, Tensor::of(elements, {static_cast<std::int64_t>(elements.size())}).to(node.dtype(0)));
}

/// The unique elements in the order of their first occurrence.
void unique(Node& node) {
  const Tensor x = node.known(0);
  if (x.shape().rank() != 1) node.fail(fmt::format("expected a list of elements, got {}", x.str()));
  std::vector<std::int64_t> firsts, positions, counts;
  const auto collect = [&]<class T>(const std::vector<T>& elements) {
    std::map<T, std::int64_t> seen;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      // NaN is not equal to itself, so that each one is unique.
      const bool ordered = elements[i] == elements[i];
      const auto next = static_cast<std::int64_t>(firsts.size());
      const auto [place, inserted] = ordered ? seen.insert({elements[i], next}) : std::pair(seen.end(), true);
      const std::int64_t position = inserted ? next : place->second;
      if (inserted) {
        firsts.push_back(static_cast<std::int64_t>(i));
        counts.push_back(0);
      }
      positions.push_back(position);
      ++counts[static_cast<std::size_t>(position)];
    }
  };
  if (is_floating(x.dtype())) {
    collect(x.to(DType::f64).to_vector<double>());
  } else {
    collect(x.to(DType::i64).to_vector<std::int64_t>());
  }
  node.output(0, ops::gather(node.input(0), node.constant(Node::integers_tensor(firsts))));
  node.output(1, Node::integers_tensor(positions));
  node.output(2, Node::integers_tensor(counts));
}

/// Attributes that Rfft and Irfft have, of which ONNX Runtime takes one value only.
void check_transform(const Node& node, std::int64_t samples) {
  if (node.integer("signal_ndim", 1) != 1 || node.flag("normalized") || !node.flag("onesided", true)) {
    node.unsupported("expected signal_ndim=1, normalized=0 and onesided=1: use DFT of ai.onnx");
  }
  constexpr std::int64_t max_samples = 8192;
  if (samples > max_samples)
    node.unsupported(fmt::format("expected signals of up to {} samples, got {}: use shorter windows", max_samples, samples));
}

/// cos and sin of 2 pi j k / n at [2 k + part, j] for k up to n / 2.
struct Basis {
  std::int64_t n;
  double at(std::int64_t row, std::int64_t j) const {
    const double angle = 2 * std::numbers::pi * static_cast<double>(row / 2 * j % n) / static_cast<double>(n);
    return row % 2 == 0 ? std::cos(angle) : -std::sin(angle);
  }
};

/// The product of real signals (..., n) with the matrix of the discrete Fourier transform, as (..., n / 2 + 1, 2).
void rfft(Node& node) {
  const Value x = node.input(0);
  Shape shape = x.shape();
  if (shape.rank() == 0 || shape[shape.rank() - 1] == 0) node.fail(fmt::format("expected signals (..., n), got {}", shape.str()));
  const std::int64_t n = shape[shape.rank() - 1], rows = 2 * (n / 2 + 1);
  check_transform(node, n);
  Tensor matrix = Tensor::empty(DType::f64, {n, rows});
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t row = 0; row < rows; ++row) matrix.data<double>()[j * rows + row] = Basis{n}.at(row, j);
  }
  shape.set(shape.rank() - 1, rows / 2);
  shape.push_back(2);
  node.output(0, ops::reshape(ops::matmul(x, node.constant(matrix.to(x.dtype()))), shape));
}

/// The inverse: (..., m, 2) to real signals (..., 2 (m - 1)). Frequencies other than the first and the last stand for two.
void irfft(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  const std::size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != 2 || shape[rank - 2] < 2) node.fail(fmt::format("expected spectra (..., m, 2), got {}", shape.str()));
  const std::int64_t m = shape[rank - 2], n = 2 * (m - 1);
  check_transform(node, n);
  Tensor matrix = Tensor::empty(DType::f64, {2 * m, n});
  for (std::int64_t row = 0; row < 2 * m; ++row) {
    const double weight = (row / 2 == 0 || row / 2 == m - 1 ? 1.0 : 2.0) / static_cast<double>(n);
    for (std::int64_t j = 0; j < n; ++j) matrix.data<double>()[row * n + j] = weight * Basis{n}.at(row, j);
  }
  Shape spectra(shape.dims().first(rank - 1));
  spectra.set(rank - 2, 2 * m);
  node.output(0, ops::matmul(ops::reshape(x, spectra), node.constant(matrix.to(x.dtype()))));
}

}  // namespace

const std::vector<Rule>& microsoft_rules() {
  static const std::vector<Rule> rules = {
      {"Gelu", 1, [](Node& n) { n.output(0, ops::gelu(n.input(0))); }},
      {"BiasGelu", 1, [](Node& n) { n.output(0, ops::gelu(ops::add(n.input(0), n.input(1)))); }},
      {"FastGelu", 1, [](Node& n) { n.output(0, ops::gelu(plus(n.input(0), n.optional_input(1)), true)); }},
      {"QuickGelu", 1, [](Node& n) { n.output(0, ops::mul(n.input(0), ops::sigmoid(ops::mul(n.input(0), n.number("alpha", 1.702))))); }},
      {"BiasSplitGelu", 1, bias_split_gelu},
      {"BiasAdd", 1, [](Node& n) { n.output(0, ops::add(ops::add(n.input(0), n.input(1)), n.input(2))); }},
      {"BiasSoftmax", 1, bias_softmax},
      {"BiasDropout", 1, bias_dropout},
      {"SkipLayerNormalization", 1, skip_normalization<false>},
      {"SkipSimplifiedLayerNormalization", 1, skip_normalization<true>},
      {"EmbedLayerNormalization", 1, embed_layer_normalization},
      {"Attention", 1, microsoft_attention},
      {"MultiHeadAttention", 1, multi_head_attention},
      {"GroupQueryAttention", 1, group_query_attention},
      {"RotaryEmbedding", 1, microsoft_rotary_embedding},
      {"FusedMatMul", 1, fused_matmul},
      {"FusedMatMulActivation", 1, fused_matmul},
      {"TransposeMatMul", 1, fused_matmul},
      {"FusedGemm", 1, fused_gemm},
      {"GemmFastGelu", 1, gemm_fast_gelu},
      {"FusedConv", 1, fused_conv<false>},
      {"NhwcConv", 1, fused_conv<true>},
      {"NhwcFusedConv", 1, fused_conv<true>},
      {"NhwcMaxPool", 1, nhwc_max_pool},
      {"GroupNorm", 1, group_norm<false>},
      {"SkipGroupNorm", 1, group_norm<true>},
      {"CDist", 1, cdist},
      {"Inverse", 1, inverse},
      {"ExpandDims", 1, expand_dims},
      {"Range", 1, range},
      {"Unique", 1, unique},
      {"Rfft", 1, rfft},
      {"Irfft", 1, irfft},
      {"Trilu", 1, as_in_onnx<14>},
      {"Pad", 1, as_in_onnx<13>},
      {"GatherND", 1, as_in_onnx<12>},
      {"GridSample", 1, as_in_onnx<16>},
  };
  return rules;
}

}  // namespace tenon::onnx
