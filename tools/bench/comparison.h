// SPDX-License-Identifier: Apache-2.0
// bench/comparison.h - compares contenders: speed-ups, and the batch size from which one is faster than another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/variants.h"

namespace tenon::bench {

class Comparison {
 public:
  explicit Comparison(const std::vector<Contender>& contenders);
  /// Adds the entries of one measurement, one for each contender, and sets their ratios: times_first, the first contender's median over
  /// theirs; times_naive, that of the naive kernels of the same device and precision.
  void add(const std::string& net, const std::string& phase, std::int64_t batch, std::vector<Entry>& entries);
  /// Adds tables of ratios and crossovers and an explanation of their columns. Adds nothing for a single contender.
  void add_to(Report& report) const;

 private:
  struct Series {
    std::vector<std::int64_t> batches;
    std::vector<std::vector<double>> ms;  ///< per batch, per contender
  };
  std::vector<std::string> names_;
  std::vector<std::size_t> naive_;  ///< for each contender, the one with naive kernels; itself if there is none
  std::map<std::pair<std::string, std::string>, Series> series_;
};

}  // namespace tenon::bench
