// bench/comparison.h - contenders side by side: who is how many times as fast as whom, and from which batch on.
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
  /// The entries of one measurement, one for each contender. Gives them their ratios: times_first, the first contender's median over
  /// theirs; times_naive, that of the naive kernels of the same device and precision.
  void add(const std::string& net, const std::string& phase, std::int64_t batch, std::vector<Entry>& entries);
  /// Tables of ratios and of crossovers, and what the columns mean. Nothing of a contender alone.
  void tell(Report& report) const;

 private:
  struct Series {
    std::vector<std::int64_t> batches;
    std::vector<std::vector<double>> ms;  ///< per batch, per contender
  };
  std::vector<std::string> names_;
  std::vector<std::size_t> naive_;  ///< of each contender, the one with naive kernels; itself: there is none
  std::map<std::pair<std::string, std::string>, Series> series_;
};

}  // namespace tenon::bench
