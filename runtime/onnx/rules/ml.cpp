// SPDX-License-Identifier: Apache-2.0
// onnx/rules/ml.cpp - ai.onnx.ml: preprocessing and linear models.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/functions.h>

#include "onnx/node.h"
#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/ml_scores.h"
#include "onnx/rules/ml_svm.h"
#include "text/counted.h"

namespace tenon::onnx {
namespace {

/// Number of elements of the last dimension.
std::int64_t features_of(const Node& node, Value x) {
  const Shape shape = x.shape();
  if (shape.rank() == 0) node.fail("expected features in the last dimension, got a scalar");
  return shape[shape.rank() - 1];
}

/// A list of one number, or of one for each feature of x.
Value per_feature(Node& node, const char* name, Value x) {
  return attribute_constant(node, name, x.dtype(), node.numbers(name).size() == 1 ? Shape{} : Shape{features_of(node, x)});
}

void scaler(Node& node) {
  Value x = cast_to(node.input(0), floating_dtype(node.dtype(0)));
  if (!node.numbers("offset").empty()) x = ops::sub(x, per_feature(node, "offset", x));
  if (!node.numbers("scale").empty()) x = ops::mul(x, per_feature(node, "scale", x));
  node.output(0, cast_to(x, DType::f32));
}

void normalizer(Node& node) {
  const Value x = cast_to(node.input(0), node.dtype(0) == DType::f64 ? DType::f64 : DType::f32);
  static_cast<void>(features_of(node, x));
  const std::string_view name = node.text("norm", "MAX");
  if (name != "MAX" && name != "L1" && name != "L2") node.fail(fmt::format("expected norm MAX, L1 or L2, got {}", name));
  const double p = name == "L1" ? 1 : name == "L2" ? 2 : std::numeric_limits<double>::infinity();
  // Rows of zeros stay zeros.
  const Value norm = ops::maximum(ops::norm(x, p, {-1}, true), 1e-30);
  node.output(0, cast_to(ops::div(x, norm), DType::f32));
}

void binarizer(Node& node) {
  const Value x = node.input(0), numbers = cast_to(x, floating_dtype(x.dtype()));
  node.output(0, ops::cast(ops::greater(numbers, node.scalar(numbers.dtype(), node.number("threshold", 0))), x.dtype()));
}

void imputer(Node& node) {
  const Value x = node.input(0);
  const DType dtype = x.dtype();
  const std::int64_t features = features_of(node, x);
  Value replaced, missing;
  if (is_floating(dtype)) {
    const double value = node.number("replaced_value_float", 0);
    missing = std::isnan(value) ? ops::is_nan(x) : ops::equal(x, node.scalar(dtype, value));
    replaced = per_feature(node, "imputed_value_floats", x);
  } else {
    missing = ops::equal(x, node.constant(Tensor::scalar(node.integer("replaced_value_int64", 0)).to(dtype)));
    const std::vector<std::int64_t>& values = node.integers("imputed_value_int64s");
    if (values.size() != 1 && static_cast<std::int64_t>(values.size()) != features) {
      node.fail(fmt::format("attribute 'imputed_value_int64s': expected 1 or {} integers, got {}", features, values.size()));
    }
    replaced = node.constant(Node::integers_tensor(values).to(dtype));
  }
  node.output(0, ops::where(missing, replaced, x));
}

void array_feature_extractor(Node& node) {
  const Value x = node.input(0), indices = node.input(1);
  static_cast<void>(features_of(node, x));
  const std::int64_t count = indices.shape().count();
  const Value y = ops::gather(x, ops::reshape(indices, Shape{count}), static_cast<std::int64_t>(x.shape().rank()) - 1);
  node.output(0, x.shape().rank() == 1 ? ops::reshape(y, Shape{1, count}) : y);
}

void one_hot_encoder(Node& node) {
  if (!node.texts("cats_strings").empty()) {
    node.unsupported("expected integer categories, got strings, which are no tensors here: encode them before the model");
  }
  const std::vector<std::int64_t>& categories = node.integers("cats_int64s");
  if (categories.empty()) node.fail("expected an attribute cats_int64s, got none");
  const Value x = cast_to(node.input(0), DType::i64);
  // An unknown category gives zeros. With zeros=0 ONNX makes it an error, which a program cannot report.
  const Value hits = ops::equal(ops::unsqueeze(x, {node.rank(0)}), node.constant(Node::integers_tensor(categories)));
  node.output(0, ops::cast(hits, DType::f32));
}

/// One of the attributes <name>_tensor, <name>_int64s and <name>_floats as a list.
Tensor listed(Node& node, const std::string& name) {
  Tensor list;
  if (node.has(name + "_tensor")) {
    list = node.tensor(name + "_tensor");
  } else if (!node.texts(name + "_strings").empty()) {
    node.unsupported(
        fmt::format("expected numbers in '{}_...', got strings, which are no tensors here: encode them outside the model", name));
  } else if (!node.numbers(name + "_floats").empty()) {
    const std::vector<float>& numbers = node.numbers(name + "_floats");
    list = Tensor::of(numbers, {static_cast<std::int64_t>(numbers.size())});
  } else {
    list = Node::integers_tensor(node.integers(name + "_int64s"));
  }
  return list.contiguous().reshape({list.count()});
}

/// The value of keys that are not listed, as a list of one.
Tensor default_value(Node& node, DType dtype) {
  Tensor value;
  if (node.has("default_tensor")) {
    value = node.tensor("default_tensor");
  } else if (is_floating(dtype)) {
    value = Tensor::full(DType::f32, {1}, node.number("default_float", -0.0));
  } else {
    value = Node::integers_tensor({node.integer("default_int64", -1)});
  }
  if (value.count() != 1) node.fail(fmt::format("expected a default of one element, got {}", value.str()));
  return value.contiguous().reshape({1}).to(dtype);
}

/// The value whose key an element equals; the last one of equal keys. From version 4 on, NaN equals NaN here.
template <bool equal_nan>
void label_encoder(Node& node) {
  const Tensor keys = listed(node, "keys"), values = listed(node, "values");
  const std::int64_t count = keys.count();
  if (values.count() != count) node.fail(fmt::format("expected as many keys as values, got {} and {}", count, values.count()));
  const Value otherwise = node.constant(default_value(node, values.dtype()));
  const Value x = cast_to(node.input(0), keys.dtype());
  if (count == 0) return node.output(0, ops::expand(ops::reshape(otherwise, Shape{}), x.shape()));
  const Value element = ops::unsqueeze(x, {node.rank(0)});
  Value hits = ops::equal(element, node.constant(keys));
  if (equal_nan && is_floating(keys.dtype())) {
    const std::vector<double> numbers = keys.to(DType::f64).to_vector<double>();
    if (std::any_of(numbers.begin(), numbers.end(), [](double key) { return std::isnan(key); })) {
      hits = ops::logical_or(hits, ops::logical_and(ops::is_nan(element), ops::is_nan(node.constant(keys))));
    }
  }
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i) + 1;
  const Value place = ops::where(hits, node.constant(Node::integers_tensor(places)), node.scalar(DType::i64, 0));
  const Value table = ops::concat({otherwise, node.constant(values)}, 0);
  node.output(0, ops::gather(table, ops::reduce_max(place, {node.rank(0)})));
}

void feature_vectorizer(Node& node) {
  const std::vector<std::int64_t>& widths = node.integers("inputdimensions");
  std::vector<Value> parts = node.inputs();
  if (parts.empty() || (!widths.empty() && widths.size() != parts.size())) {
    node.fail(fmt::format("expected inputdimensions for {}, got {}", counted(parts.size(), "operand"), widths.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Value& part = parts[i];
    const Shape shape = part.shape();
    if (shape.rank() != 1 && shape.rank() != 2) node.fail(fmt::format("expected features (N, F) or (F), got {}", shape.str()));
    if (shape.rank() == 1) part = ops::reshape(part, Shape{1, shape[0]});
    part = cast_to(part, DType::f32);
    const std::int64_t size = part.shape()[1], width = widths.empty() ? size : widths[i];
    if (width < 0 || width > std::numeric_limits<std::int32_t>::max()) {
      node.fail(fmt::format("expected inputdimensions of 0 or more, got {}", width));
    }
    if (width < size) part = ops::slice(part, 1, 0, width);
    if (width > size) part = ops::pad(part, {{0, 0}, {0, width - size}});
  }
  node.output(0, parts.size() == 1 ? parts[0] : ops::concat(parts, 1));
}

/// x W' + b with the attributes coefficients (targets, F) and intercepts (targets), which may be absent.
Value linear_scores(Node& node, Value x, std::int64_t targets) {
  const auto given = static_cast<std::int64_t>(node.numbers("coefficients").size());
  if (targets < 1 || targets > given) node.fail(fmt::format("expected {} targets with coefficients, got {} coefficients", targets, given));
  const Value w = attribute_constant(node, "coefficients", x.dtype(), {targets, x.shape()[1]});
  const Value b = node.numbers("intercepts").empty() ? Value() : attribute_constant(node, "intercepts", x.dtype(), {targets});
  return ops::gemm(x, w, b, {.trans_b = true});
}

void linear_regressor(Node& node) {
  const Value x = samples_of(node);
  node.output(0, cast_to(post_transformed(node, linear_scores(node, x, node.integer("targets", 1))), DType::f32));
}

void linear_classifier(Node& node) {
  const Value x = samples_of(node);
  const std::int64_t features = x.shape()[1];
  if (features == 0) node.fail("expected samples of at least one feature, got none");
  const std::int64_t targets = static_cast<std::int64_t>(node.numbers("coefficients").size()) / features;
  Value scores = linear_scores(node, x, targets);
  if (targets == 1 && count_labels(node) == 2) scores = ops::concat({ops::neg(scores), scores}, 1);
  scores = post_transformed(node, scores);
  node.output(1, cast_to(scores, DType::f32));
  if (!node.needs_output(0)) return;
  const std::int64_t classes = scores.shape()[1];
  if (classes > 1) return node.output(0, labelled(node, ops::arg_max(scores, 1), class_labels(node, classes)));
  // A single class is the label from a threshold on.
  const std::int64_t label = count_labels(node) == 0 ? 1 : class_labels(node, 1)[0];
  const double threshold = node.text("post_transform", "NONE") == "NONE" ? 0 : 0.5;
  const Value chosen = ops::greater_equal(ops::reshape(scores, Shape{scores.shape()[0]}), node.scalar(scores.dtype(), threshold));
  node.output(0, ops::where(chosen, node.constant(Tensor::scalar(label)), node.scalar(DType::i64, 0)));
}

}  // namespace

const std::vector<Rule>& ml_rules() {
  static const std::vector<Rule> rules = {
      {"Scaler", 1, scaler},
      {"Normalizer", 1, normalizer},
      {"Binarizer", 1, binarizer},
      {"Imputer", 1, imputer},
      {"ArrayFeatureExtractor", 1, array_feature_extractor},
      {"OneHotEncoder", 1, one_hot_encoder},
      {"LabelEncoder", 2, label_encoder<false>},
      {"LabelEncoder", 4, label_encoder<true>},
      {"FeatureVectorizer", 1, feature_vectorizer},
      {"LinearRegressor", 1, linear_regressor},
      {"LinearClassifier", 1, linear_classifier},
      {"SVMRegressor", 1, svm_regressor},
      {"SVMClassifier", 1, svm_classifier},
  };
  return rules;
}

}  // namespace tenon::onnx
