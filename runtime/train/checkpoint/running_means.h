// SPDX-License-Identifier: Apache-2.0
// train/checkpoint/running_means.h - weighted means over batches.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon::train {

struct RunningMeans {
  std::vector<double> sums;
  double weight = 0;

  void reset(std::size_t count) {
    sums.assign(count, 0);
    weight = 0;
  }
  void add(const std::vector<double>& means, double batch_weight) {
    if (batch_weight == 0) return;  // all labels are ignored: its means are 0 / 0
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += means[i] * batch_weight;
    weight += batch_weight;
  }
  /// The means; 0 before the first batch.
  void write(std::vector<double>& out_means) const {
    out_means.resize(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) out_means[i] = weight > 0 ? sums[i] / weight : 0;
  }
};

}  // namespace tenon::train
