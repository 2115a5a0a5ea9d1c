// SPDX-License-Identifier: Apache-2.0
#include "train/prediction_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "io/csv_row.h"
#include "yaml/json.h"

namespace tenon::train {
namespace {

constexpr std::int64_t max_values = 8;  ///< longer outputs are summarised in a line

std::vector<double> values_of(const Tensor& t) {
  const Tensor flat = t.to_host().reshape({t.count()});
  std::vector<double> values;
  for (std::int64_t i = 0; i < flat.count(); ++i) values.push_back(flat[i].item());
  return values;
}

std::string shown(const std::vector<double>& values) {
  if (values.size() == 1) return fmt::format("{:.6g}", values[0]);
  return fmt::format("[{:.6g}]", fmt::join(values, ", "));
}

/// The label that a sample with one label should have: its target, or the largest of one value per class. -1: not known.
std::int64_t expected_label(const Prediction& p) {
  if (!p.expected.defined() || p.classes.empty()) return -1;
  const std::vector<double> values = values_of(p.expected);
  if (values.size() == 1) return static_cast<std::int64_t>(values[0]);
  return std::max_element(values.begin(), values.end()) - values.begin();
}

/// The name of a class, or "class 7".
std::string class_text(const Prediction& p, std::int64_t label) {
  for (const ClassScore& c : p.classes) {
    if (c.label == label && !c.name.empty()) return c.name;
  }
  return fmt::format("class {}", label);
}

std::size_t shown_classes(const Prediction& p, std::size_t top_k) {
  return std::min(std::max<std::size_t>(top_k, 1), p.classes.size());
}

std::string classes_line(const Prediction& p, std::size_t top_k, bool probabilities) {
  std::string text;
  for (std::size_t k = 0; k < shown_classes(p, top_k); ++k) {
    const ClassScore& c = p.classes[k];
    text += fmt::format("{}{} ({})", k == 0 ? "" : ", ", class_text(p, c.label),
                        probabilities ? fmt::format("{:.1f} %", c.score * 100) : fmt::format("{:.6g}", c.score));
  }
  const std::int64_t label = expected_label(p);
  return label < 0 ? text : fmt::format("{}, expected {}", text, class_text(p, label));
}

/// The classes of the steps, and how many of them are right.
std::string steps_line(const Prediction& p) {
  const std::vector<double> steps = values_of(p.steps);
  const auto list = [](const std::vector<double>& all) {
    const std::vector<double> first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), max_values)));
    return fmt::format("{:g}{}", fmt::join(first, " "), all.size() > first.size() ? " ..." : "");
  };
  std::string text = "classes " + list(steps);
  if (!p.expected.defined() || p.expected.count() != p.steps.count()) return text;
  const std::vector<double> expected = values_of(p.expected);
  std::size_t right = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) right += steps[i] == expected[i] ? 1 : 0;
  return fmt::format("{}, expected {}: {} of {} right", text, list(expected), right, steps.size());
}

std::string values_line(const Prediction& p) {
  const std::vector<double> output = values_of(p.output);
  const bool compared = p.expected.defined() && p.expected.count() == p.output.count();
  const std::vector<double> expected = compared ? values_of(p.expected) : std::vector<double>();
  if (p.output.count() <= max_values) return shown(output) + (compared ? ", expected " + shown(expected) : "");
  double sum = 0, error = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    sum += output[i];
    if (compared) error += std::abs(output[i] - expected[i]);
  }
  const auto count = static_cast<double>(output.size());
  const auto [least, most] = std::minmax_element(output.begin(), output.end());
  return fmt::format("{}, {:.4g} to {:.4g}, mean {:.4g}{}", p.output.shape().str(), *least, *most, sum / count,
                     compared ? fmt::format(", mean absolute error {:.4g}", error / count) : "");
}

Json nested(const Tensor& t) {
  if (t.shape().rank() == 0) {
    const double value = t.item();
    return t.dtype() == DType::i64 || t.dtype() == DType::i32 ? Json(static_cast<std::int64_t>(value)) : Json(value);
  }
  Json list = Json::array();
  for (std::int64_t i = 0; i < t.shape()[0]; ++i) list.push_back(nested(t.select(0, i)));
  return list;
}

}  // namespace

std::string PredictionText::line(const Prediction& p) const {
  const std::string text = !p.classes.empty() ? classes_line(p, top_k, probabilities) : p.steps.defined() ? steps_line(p) : values_line(p);
  return fmt::format("{:>5}: {}{}", p.input, p.output_name.empty() ? "" : p.output_name + ": ", text);
}

std::string PredictionText::json(const Prediction& p, std::int64_t index) const {
  Json object{{"index", index}, {"input", p.input}, {"output", nested(p.output)}};
  if (!p.output_name.empty()) object["output_name"] = p.output_name;
  if (!p.classes.empty()) {
    object["class"] = p.classes[0].label;
    Json top = Json::array();
    for (std::size_t k = 0; k < shown_classes(p, top_k); ++k) {
      const ClassScore& c = p.classes[k];
      Json one{{"class", c.label}};
      if (!c.name.empty()) one["name"] = c.name;
      one[probabilities ? "probability" : "score"] = c.score;
      top.push_back(std::move(one));
    }
    object["top"] = std::move(top);
  }
  if (p.steps.defined()) object["classes"] = nested(p.steps);
  if (p.expected.defined()) {
    const std::int64_t label = expected_label(p);
    object["expected"] = label < 0 ? nested(p.expected) : Json(label);
  }
  return json_text(object);
}

std::string PredictionText::csv_header(const Prediction& p) const {
  std::vector<std::string> cells{"input"};
  if (!p.classes.empty()) {
    for (std::size_t k = 0; k < shown_classes(p, top_k); ++k) {
      const std::string end = k == 0 ? "" : fmt::format("_{}", k + 1);
      for (const char* name : {"class", "name", probabilities ? "probability" : "score"}) cells.push_back(name + end);
    }
    if (p.expected.defined()) cells.emplace_back("expected");
    return io::csv_row(cells);
  }
  const auto numbered = [&](const char* name, const Tensor& t) {
    for (std::int64_t i = 0; t.defined() && i < t.count(); ++i) cells.push_back(t.count() == 1 ? name : fmt::format("{}_{}", name, i));
  };
  numbered(p.steps.defined() ? "class" : "output", p.steps.defined() ? p.steps : p.output);
  numbered("expected", p.expected);
  return io::csv_row(cells);
}

std::string PredictionText::csv(const Prediction& p) const {
  std::vector<std::string> cells{p.input};
  if (!p.classes.empty()) {
    for (std::size_t k = 0; k < shown_classes(p, top_k); ++k) {
      const ClassScore& c = p.classes[k];
      cells.insert(cells.end(), {std::to_string(c.label), c.name, fmt::format("{:.9g}", c.score)});
    }
    if (p.expected.defined()) cells.push_back(std::to_string(expected_label(p)));
    return io::csv_row(cells);
  }
  for (const Tensor& t : {p.steps.defined() ? p.steps : p.output, p.expected}) {
    if (!t.defined()) continue;
    for (const double value : values_of(t)) cells.push_back(fmt::format("{:.9g}", value));
  }
  return io::csv_row(cells);
}

}  // namespace tenon::train
