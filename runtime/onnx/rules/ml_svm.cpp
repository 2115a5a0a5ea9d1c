// SPDX-License-Identifier: Apache-2.0
// onnx/rules/ml_svm.cpp - support vector machines: kernels as products, and the votes of classifiers of two classes each.
#include "onnx/rules/ml_svm.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/ml_scores.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// The attribute support_vectors as (V, F) of doubles.
Tensor support_vectors(Node& node, std::int64_t vectors, std::int64_t features) {
  const std::vector<float>& elements = node.numbers("support_vectors");
  if (static_cast<std::int64_t>(elements.size()) != product_of(node, vectors, features)) {
    node.fail(fmt::format("expected {} support vectors of {} features, got {} numbers", vectors, features, elements.size()));
  }
  return Tensor::of(elements, {vectors, features}).to(DType::f64);
}

/// exp(-gamma |x - v|^2) of samples (N, F) and vectors (V, F) as (N, V). Both are first moved to the middle of the vectors, so that the
/// squares, of which the distance is a difference, are small.
Value radial(Node& node, Value x, Tensor vectors, double gamma) {
  const std::int64_t count = vectors.shape()[0], features = vectors.shape()[1];
  std::vector<double> middle(static_cast<std::size_t>(features));
  auto* element = vectors.data<double>();
  for (std::int64_t i = 0; i < count * features; ++i) {
    middle[static_cast<std::size_t>(i % features)] += element[i] / static_cast<double>(count);
  }
  std::vector<double> squares(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count * features; ++i) {
    element[i] -= middle[static_cast<std::size_t>(i % features)];
    squares[static_cast<std::size_t>(i / features)] += element[i] * element[i];
  }
  const auto constant = [&](const Tensor& tensor) { return node.constant(tensor.to(x.dtype())); };
  x = ops::sub(x, constant(Tensor::of(middle, {features})));
  const Value products = ops::gemm(x, constant(vectors), constant(Tensor::of(squares, {count})), {.trans_b = true, .alpha = -2});
  const Value distances = ops::maximum(ops::add(products, ops::reduce_sum_square(x, {1}, true)), 0);
  return ops::exp(ops::mul(distances, -gamma));
}

/// The kernel function of samples (N, F) and the support vectors (V, F) as (N, V).
Value kernel_of(Node& node, Value x, std::int64_t count) {
  const Tensor vectors = support_vectors(node, count, x.shape()[1]);
  const std::vector<float>& given = node.numbers("kernel_params");
  const auto parameter = [&](std::size_t i) { return i < given.size() ? static_cast<double>(given[i]) : 0.0; };
  const double gamma = parameter(0), offset = parameter(1);
  const std::string_view type = node.text("kernel_type", "LINEAR");
  if (type == "RBF") return radial(node, x, vectors, gamma);
  const Value products = ops::gemm(x, node.constant(vectors.to(x.dtype())), {}, {.trans_b = true});
  if (type == "LINEAR") return products;
  const Value moved = ops::add(ops::mul(products, gamma), offset);
  if (type == "POLY") return ops::pow(moved, std::trunc(parameter(2)));
  if (type == "SIGMOID") return ops::tanh(moved);
  node.fail(fmt::format("expected kernel_type LINEAR, POLY, RBF or SIGMOID, got {}", type));
}

double first_rho(const Node& node) {
  if (node.numbers("rho").empty()) node.fail("expected an attribute rho of at least one number, got none");
  return static_cast<double>(node.numbers("rho")[0]);
}

/// A list of doubles as a constant of this dtype and shape.
Value constant_of(Node& node, const std::vector<double>& elements, DType dtype, const Shape& shape) {
  return node.constant(Tensor::of(elements, shape).to(dtype));
}

/// The classifiers of each pair (i, j) of classes, i < j, of which a positive score is for i.
struct Pairs {
  Value scores;  ///< (N, pairs)
  Value winner;  ///< the class with most votes, the first of these: i64 (N)
};

Pairs classify_pairs(Node& node, Value x, std::int64_t classes, std::int64_t vectors) {
  const std::vector<std::int64_t>& per_class = node.integers("vectors_per_class");
  const std::vector<float>& coefficients = node.numbers("coefficients");
  const std::vector<float>& rho = node.numbers("rho");
  const bool fits = classes >= 2 && static_cast<std::int64_t>(per_class.size()) == classes &&
                    static_cast<std::int64_t>(coefficients.size()) == product_of(node, classes - 1, vectors);
  if (!fits) {
    node.fail(fmt::format("expected {} vectors_per_class and {} x {} coefficients, got {} and {}", classes, classes - 1, vectors,
                          per_class.size(), coefficients.size()));
  }
  const std::int64_t pairs = classes * (classes - 1) / 2;
  if (static_cast<std::int64_t>(rho.size()) < pairs) node.fail(fmt::format("expected {} numbers in rho, got {}", pairs, rho.size()));
  check_listed(node, product_of(node, std::max(vectors, classes), pairs));
  std::vector<std::int64_t> first{0};
  for (const std::int64_t count : per_class) first.push_back(first.back() + count);
  // Classifier (i, j) reads the vectors of i with the coefficients of row j - 1, and those of j with the ones of row i.
  std::vector<double> weights(static_cast<std::size_t>(vectors * pairs)), votes(static_cast<std::size_t>(pairs * classes));
  std::vector<double> offsets_of_votes(static_cast<std::size_t>(classes));
  std::int64_t pair = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    for (std::int64_t j = i + 1; j < classes; ++j, ++pair) {
      const auto copy = [&](std::int64_t of, std::int64_t row) {
        for (std::int64_t v = first[static_cast<std::size_t>(of)]; v < first[static_cast<std::size_t>(of) + 1]; ++v) {
          weights[static_cast<std::size_t>(v * pairs + pair)] =
              static_cast<double>(coefficients[static_cast<std::size_t>(row * vectors + v)]);
        }
      };
      copy(i, j - 1);
      copy(j, i);
      votes[static_cast<std::size_t>(pair * classes + i)] = 1;
      votes[static_cast<std::size_t>(pair * classes + j)] = -1;
      offsets_of_votes[static_cast<std::size_t>(j)] += 1;
    }
  }
  const DType dtype = x.dtype();
  const std::vector<double> offsets(rho.begin(), rho.begin() + static_cast<std::ptrdiff_t>(pairs));
  Pairs result;
  result.scores = ops::gemm(kernel_of(node, x, vectors), constant_of(node, weights, dtype, {vectors, pairs}),
                            constant_of(node, offsets, dtype, {pairs}));
  const Value wins = ops::cast(ops::greater(result.scores, node.scalar(dtype, 0)), dtype);
  const Value counts =
      ops::gemm(wins, constant_of(node, votes, dtype, {pairs, classes}), constant_of(node, offsets_of_votes, dtype, {classes}));
  result.winner = ops::arg_max(counts, 1);
  return result;
}

/// The probability of the first of two classes: 1 - sigmoid(a score + b).
Value probability_of_first(Node& node, Value scores) {
  const auto first = [&](const char* name) {
    const std::vector<float>& list = node.numbers(name);
    if (list.empty()) node.fail(fmt::format("expected an attribute {} of one number, got none", name));
    return static_cast<double>(list[0]);
  };
  const Value exponent = ops::add(ops::mul(scores, first("prob_a")), first("prob_b"));
  return ops::clip(ops::sigmoid(ops::neg(exponent)), 1e-7, 1 - 1e-7);
}

bool has_positive_weights_only(const Node& node) {
  const std::vector<float>& weights = node.numbers("coefficients");
  return std::all_of(weights.begin(), weights.end(), [](float weight) { return weight >= 0; });
}

/// Classifiers of pairs of classes.
void classify_by_votes(Node& node, Value x, std::int64_t classes, std::int64_t vectors) {
  const Pairs pairs = classify_pairs(node, x, classes, vectors);
  const bool probabilities = !node.numbers("prob_a").empty();
  Value scores = pairs.scores;
  if (probabilities && classes > 2) {
    node.unsupported(
        fmt::format("expected probabilities of two classes, got {} classes, whose probabilities are found by iteration: export "
                    "the model with probability=False",
                    classes));
  }
  if (classes == 2) {
    const Value first = probabilities ? probability_of_first(node, scores) : ops::neg(scores);
    scores = ops::concat({first, probabilities ? ops::add(ops::neg(first), 1) : scores}, 1);
  }
  node.output(1, cast_to(post_transformed(node, scores), DType::f32));
  if (!node.needs_output(0)) return;
  const std::vector<std::int64_t> labels = class_labels(node, classes);
  const Value label = labelled(node, pairs.winner, labels);
  const bool second = classes == 2 && !probabilities && has_positive_weights_only(node);
  node.output(0, second ? ops::expand(node.constant(Tensor::scalar(labels[1])), label.shape()) : label);
}

/// One linear score for each class.
void classify_linearly(Node& node, Value x, std::int64_t classes) {
  const DType dtype = x.dtype();
  const Value weights = attribute_constant(node, "coefficients", dtype, {classes, x.shape()[1]});
  const Value scores = ops::add(ops::gemm(x, weights, {}, {.trans_b = true}), first_rho(node));
  node.output(1, cast_to(classes == 1 ? scores : post_transformed(node, scores), DType::f32));
  if (!node.needs_output(0)) return;
  const std::vector<std::int64_t> labels = class_labels(node, classes);
  const Value best = labelled(node, ops::arg_max(scores, 1), labels), highest = ops::reduce_max(scores, {1});
  const auto label = [&](std::int64_t value) { return node.constant(Tensor::scalar(value)); };
  const bool one_rho = node.numbers("rho").size() == 1;
  if (one_rho && classes == 2 && has_positive_weights_only(node)) {
    node.output(0, ops::where(ops::greater_equal(highest, node.scalar(dtype, 0.5)), label(labels[1]), best));
  } else if (one_rho && classes != 2) {
    node.output(0, ops::where(ops::greater(highest, node.scalar(dtype, 0)), label(1), label(0)));
  } else {
    node.output(0, best);
  }
}

}  // namespace

void svm_regressor(Node& node) {
  const Value x = samples_of(node);
  const DType dtype = x.dtype();
  if (node.text("post_transform", "NONE") != "NONE") {
    node.unsupported(fmt::format("expected post_transform NONE, got {}", node.text("post_transform")));
  }
  const std::int64_t vectors = node.integer("n_supports", 0);
  Value scores = vectors > 0 ? ops::matmul(kernel_of(node, x, vectors), attribute_constant(node, "coefficients", dtype, {vectors, 1}))
                             : ops::matmul(x, attribute_constant(node, "coefficients", dtype, {x.shape()[1], 1}));
  scores = ops::add(scores, first_rho(node));
  if (node.flag("one_class")) {
    scores = ops::where(ops::greater(scores, node.scalar(dtype, 0)), node.scalar(dtype, 1), node.scalar(dtype, -1));
  }
  node.output(0, cast_to(scores, DType::f32));
}

void svm_classifier(Node& node) {
  const Value x = samples_of(node);
  const std::int64_t classes = std::max<std::int64_t>(count_labels(node), 1);
  std::int64_t vectors = 0;
  for (const std::int64_t count : node.integers("vectors_per_class")) {
    if (count < 0 || count > max_listed_elements || vectors > max_listed_elements) {
      node.fail(fmt::format("expected vectors_per_class of 0 to {}, got {}", max_listed_elements, count));
    }
    vectors += count;
  }
  if (vectors > 0) {
    classify_by_votes(node, x, classes, vectors);
  } else {
    classify_linearly(node, x, classes);
  }
}

}  // namespace tenon::onnx
