// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

#include "config/train_blocks.h"
#include "train/program/objective.h"

namespace tenon::config {
namespace {

/// The names and synonyms of a table of rules.
template <class E, class Rule>
std::vector<Choice<E>> words_from(std::span<const Rule> rules, E Rule::*value) {
  std::vector<Choice<E>> words;
  for (const Rule& rule : rules) {
    if constexpr (std::is_same_v<E, Loss>) {
      if (rule.loss == Loss::custom) continue;  // a function of a program
    }
    words.push_back({rule.name, rule.*value});
    if (rule.synonym != nullptr) words.push_back({rule.synonym, rule.*value});
  }
  return words;
}

MetricDefinition read_metric(const Value& item) {
  const auto words = words_from(train::metric_rules(), &train::MetricRule::metric);
  Section section = item.section_with("name");
  MetricDefinition metric(section.require_value("name", "the name of a metric").as_choice(words));
  if (metric.metric == Metric::top_k) metric.k = section.get<std::int64_t>("k", metric.k, {1, max_count});
  section.finish();
  return metric;
}

/// Reads the keys of a loss. `expected`: of the key name.
LossDefinition read_loss_keys(Section& section, const Value& value, const char* expected) {
  const auto words = words_from(train::loss_rules(), &train::LossRule::loss);
  LossDefinition result;
  result.where = value.mark().str();
  result.loss = section.require_value("name", expected).as_choice(words);
  const train::LossRule& rule = train::rule_of(result.loss);
  if (rule.from_logits) result.from_logits = section.get<bool>("from_logits", false);
  if (rule.label_smoothing) result.label_smoothing = section.get<double>("label_smoothing", result.label_smoothing, below_one);
  if (rule.class_weights) {
    if (const auto weights = section.find("class_weights", "a list of numbers, one for each class", "null");
        weights && !weights->is_null()) {
      for (const Value& weight : weights->items("a list of numbers, one for each class"))
        result.class_weights.push_back(weight.as_number(from_zero));
    }
  }
  if (rule.targets == train::Targets::binary) {
    result.positive_weight = section.get<double>("positive_weight", result.positive_weight, above_zero);
  }
  if (rule.ignore_index) result.ignore_index = section.get_optional<std::int64_t>("ignore_index");
  if (result.loss == Loss::ctc) result.blank = section.get<std::int64_t>("blank", result.blank, {0, max_count});
  if (result.loss == Loss::huber) result.delta = section.get<double>("delta", result.delta, above_zero);
  return result;
}

}  // namespace

LossDefinition read_loss(const Value& value) {
  Section section = value.section_with("name");
  LossDefinition loss = read_loss_keys(section, value, "the name of a loss; losses of outputs by name are the key losses");
  section.finish();
  return loss;
}

std::vector<OutputLoss> read_losses(const Value& value) {
  std::vector<OutputLoss> losses;
  yaml::Mistakes mistakes;
  for (const auto& [output, item] : value.entries("a map of outputs and their losses")) {
    mistakes.attempt([&, &output = output, &item = item] {
      OutputLoss of{.output = output};
      Section section = item.section_with("name");
      of.loss = read_loss_keys(section, item, "the name of a loss");
      of.target = section.get("target", "");
      of.weight = section.get<double>("weight", of.weight, from_zero);
      if (const auto metrics = section.find("metrics", "a metric, or a list of metrics", "[]"); metrics && !metrics->is_null())
        section.attempt([&] { of.metrics = read_metrics(*metrics, of.loss); });
      section.finish();
      losses.push_back(std::move(of));
    });
  }
  mistakes.raise();
  if (losses.empty()) value.fail_expected("a map of outputs and their losses");
  return losses;
}

std::vector<MetricDefinition> read_metrics(const Value& value, const LossDefinition& loss) {
  std::vector<MetricDefinition> result;
  const std::vector<Value> items = value.is_list() ? value.items("a list of metrics") : std::vector<Value>{value};
  yaml::Mistakes mistakes;
  for (const Value& item : items) {
    mistakes.attempt([&] {
      const MetricDefinition metric = read_metric(item);
      for (const MetricDefinition& earlier : result) {
        if (earlier == metric) item.fail(fmt::format("'{}' is given twice", name_of(metric.metric)));
      }
      const train::Targets targets = train::rule_of(loss.loss).targets;
      if (!train::rule_of(metric.metric).suits(targets)) {
        std::vector<std::string> others;
        for (const train::MetricRule& rule : train::metric_rules()) {
          if (rule.suits(targets)) others.emplace_back(rule.name);
        }
        item.fail(fmt::format("'{}' cannot be used with the loss {}{}", name_of(metric.metric), name_of(loss.loss),
                              others.empty() ? ", for which there is no metric" : fmt::format("; {} can", fmt::join(others, ", "))));
      }
      result.push_back(metric);
    });
  }
  mistakes.raise();
  return result;
}

}  // namespace tenon::config
