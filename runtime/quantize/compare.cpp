// SPDX-License-Identifier: Apache-2.0
// quantize/compare.cpp - how far the outputs of a model are from those of another one.
#include <tenon/quantize.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tenon/error.h>

#include "quantize/batch.h"
#include "text/counted.h"

namespace tenon::quantize {
namespace {

/// The larger of two numbers, or NaN if one of them is.
double larger(double a, double b) {
  return std::isnan(a) || a >= b ? a : b;
}

/// Sums over the elements of an output. Elements that are expected to be infinite, as masked scores are, have no magnitude that
/// differences could be related to.
struct OutputDifference {
  double largest = 0, largest_expected = 0, squares = 0, squares_expected = 0;

  void add(const Tensor& expected, const Tensor& got) {
    const std::vector<double> a = expected.to(DType::f64).to_vector<double>(), b = got.to(DType::f64).to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double d = a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]);  // infinities of the same sign are equal
      largest = larger(largest, d);
      squares += d * d;
      if (!std::isfinite(a[i])) continue;
      largest_expected = std::max(largest_expected, std::fabs(a[i]));
      squares_expected += a[i] * a[i];
    }
  }
};

double ratio(double numerator, double denominator) {
  if (numerator == 0 || std::isnan(numerator)) return numerator;
  return denominator == 0 ? std::numeric_limits<double>::infinity() : numerator / denominator;
}

/// The index of the largest element of each row (n, classes).
std::vector<std::int64_t> classes_of(const Tensor& scores) {
  const std::vector<double> elements = scores.to(DType::f64).to_vector<double>();
  const std::int64_t classes = scores.shape()[1];
  std::vector<std::int64_t> best;
  for (auto row = elements.begin(); row != elements.end(); row += classes) best.push_back(std::max_element(row, row + classes) - row);
  return best;
}

}  // namespace

Comparison compare(onnx::Model& expected, onnx::Model& model, const Samples& samples, const Tensor& labels, std::int64_t batch_size) {
  if (batch_size < 1) throw Error(fmt::format("comparison: batch_size: expected at least 1, got {}", batch_size));
  const std::int64_t fixed = std::max(fixed_batch_of(expected), fixed_batch_of(model));
  if (fixed > 0) batch_size = fixed;
  Comparison comparison;
  std::vector<OutputDifference> differences(expected.outputs().size());
  std::int64_t same = 0, classified = 0, right_before = 0, right = 0;
  const std::vector<std::int64_t> classes =
      labels.defined() ? labels.to(DType::i64).to_vector<std::int64_t>() : std::vector<std::int64_t>();
  for (std::int64_t begin = 0; begin < samples.count; begin += batch_size) {
    const std::int64_t end = std::min(begin + batch_size, samples.count);
    if (fixed > 0 && end - begin < fixed) break;
    const NamedTensors inputs = samples.read(begin, end);
    std::vector<Tensor> a;
    for (const Tensor& output : expected.run(inputs)) a.push_back(output.to_host());
    const std::vector<Tensor>& b = model.run(inputs);
    if (a.size() != b.size()) throw Error(fmt::format("comparison: expected {}, got {}", counted(a.size(), "output"), b.size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(a[i].shape() == b[i].shape()))
        throw Error(fmt::format("comparison: output {}: expected {}, got {}", i, a[i].str(), b[i].str()));
      differences[i].add(a[i], b[i].to_host());
    }
    comparison.samples = end;
    if (a[0].shape().rank() != 2 || a[0].shape()[1] < 2 || a[0].shape()[0] != end - begin) continue;
    const std::vector<std::int64_t> before = classes_of(a[0]), after = classes_of(b[0].to_host());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t sample = static_cast<std::size_t>(begin) + i;
      ++classified;
      same += before[i] == after[i] ? 1 : 0;
      if (sample >= classes.size()) continue;
      right_before += before[i] == classes[sample] ? 1 : 0;
      right += after[i] == classes[sample] ? 1 : 0;
    }
  }
  for (const OutputDifference& difference : differences) {
    comparison.largest_difference = larger(comparison.largest_difference, ratio(difference.largest, difference.largest_expected));
    comparison.rms_difference = larger(comparison.rms_difference, std::sqrt(ratio(difference.squares, difference.squares_expected)));
  }
  if (classified == 0) return comparison;
  comparison.same_class = static_cast<double>(same) / static_cast<double>(classified);
  if (classes.empty()) return comparison;
  comparison.expected_accuracy = static_cast<double>(right_before) / static_cast<double>(classified);
  comparison.accuracy = static_cast<double>(right) / static_cast<double>(classified);
  return comparison;
}

}  // namespace tenon::quantize
