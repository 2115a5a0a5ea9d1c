// SPDX-License-Identifier: Apache-2.0
// quantize/calibrate.h - ranges of values from runs on samples.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/quantize.h>

#include "quantize/ranges.h"

namespace tenon::quantize {

/// Runs graphs on samples and observes values of f32. Values have the same ids in the graphs of all batch sizes.
class Calibrator {
 public:
  /// Keeps references. `fixed_batch`: the batch size of all graphs; 0: any.
  Calibrator(const Context& context, const std::function<Graph(std::int64_t batch)>& graph_of, const Samples& samples,
             std::int64_t fixed_batch, const Options& options);

  /// The range of each value.
  /// Errors  no samples, or fewer than the fixed batch; an element that is NaN or infinite, by the name of its value.
  std::vector<Range> ranges_of(const std::vector<ValueId>& values);
  /// How many samples each run of ranges_of reads: all but a rest that does not fill the fixed batch.
  std::int64_t sample_count() const { return count_; }

 private:
  /// Runs the samples, and calls observe(i, elements) with those of value i.
  void run(const std::vector<ValueId>& values, const std::function<void(std::size_t i, std::span<const float> elements)>& observe);

  const Context& context_;
  const std::function<Graph(std::int64_t batch)>& graph_of_;
  const Samples& samples_;
  const Options& options_;
  std::int64_t batch_, count_;
};

}  // namespace tenon::quantize
