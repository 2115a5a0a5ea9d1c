// SPDX-License-Identifier: Apache-2.0
#include "bench/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace tenon::bench {

Comparison::Comparison(const std::vector<Contender>& contenders) {
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Variant& own = contenders[i].variant;
    names_.push_back(own.name);
    naive_.push_back(i);
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      const Variant& other = contenders[k].variant;
      if (other.kernels == "naive" && other.device().name() == own.device().name() && other.precision == own.precision) naive_[i] = k;
    }
  }
}

void Comparison::add(const std::string& net, const std::string& phase, std::int64_t batch, std::vector<Entry>& entries) {
  Series& series = series_[{net, phase}];
  series.batches.push_back(batch);
  std::vector<double> ms;
  for (const Entry& entry : entries) ms.push_back(entry.median_ns() / 1e6);
  for (std::size_t i = 0; i < entries.size() && entries.size() > 1; ++i) {
    entries[i].extra.emplace_back("times_first", ms[0] / ms[i]);
    if (naive_[i] != i) entries[i].extra.emplace_back("times_naive", ms[naive_[i]] / ms[i]);
  }
  series.ms.push_back(std::move(ms));
}

void Comparison::add_to(Report& report) const {
  if (names_.size() < 2) return;
  std::vector<std::string> columns{"net", "phase", "batch"};
  for (const std::string& name : names_) columns.push_back(name + " ms");
  for (std::size_t i = 1; i < names_.size(); ++i) columns.push_back(names_[i] + " x");
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (naive_[i] != i) columns.push_back(names_[i] + " x naive");
  }
  std::vector<std::vector<std::string>> rows, crossings;
  for (const auto& [key, series] : series_) {
    for (std::size_t b = 0; b < series.batches.size(); ++b) {
      const std::vector<double>& ms = series.ms[b];
      std::vector<std::string> row{key.first, key.second, std::to_string(series.batches[b])};
      for (const double value : ms) row.push_back(fmt::format("{:.4g}", value));
      for (std::size_t i = 1; i < ms.size(); ++i) row.push_back(fmt::format("{:.3g}", ms[0] / ms[i]));
      for (std::size_t i = 0; i < ms.size(); ++i) {
        if (naive_[i] != i) row.push_back(fmt::format("{:.3g}", ms[naive_[i]] / ms[i]));
      }
      rows.push_back(std::move(row));
    }
    for (std::size_t i = 1; i < names_.size() && series.batches.size() > 1; ++i) {
      std::optional<std::int64_t> from;
      for (std::size_t b = 0; b < series.batches.size(); ++b) {
        if (series.ms[b][i] < series.ms[b][0] && (!from || series.batches[b] < *from)) from = series.batches[b];
      }
      crossings.push_back({key.first, key.second, names_[i], names_[0], from ? std::to_string(*from) : "none"});
    }
  }
  report.table("side by side", std::move(columns), std::move(rows), true);
  if (!crossings.empty())
    report.table("crossover", {"net", "phase", "contender", "is faster than", "from batch"}, std::move(crossings), true);
  report.note(fmt::format(
      "times_first, x: median of {} over that of the row or column; times_naive, x naive: the same for the naive kernels of the device",
      names_[0]));
}

}  // namespace tenon::bench
