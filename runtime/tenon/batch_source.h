// SPDX-License-Identifier: Apache-2.0
// tenon/batch_source.h - whole batches as training data: generators, and data loaders of other
// libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/data.h>

namespace tenon {

/// Batches one after the other, in place of numbered samples. The order is the source's own.
/// Threads  called on the thread of fit or evaluate.
class TENON_API BatchSource {
 public:
  virtual ~BatchSource();
  /// The name in messages.
  virtual const std::string& name() const = 0;
  /// At least one; shapes without the batch axis.
  virtual const std::vector<SampleType>& inputs() const = 0;
  /// At least one; shapes without the batch axis.
  virtual const std::vector<SampleType>& targets() const = 0;
  /// Batches in an epoch; 0: not known before its end.
  virtual std::int64_t batches() const { return 0; }
  /// Begins an epoch. fit counts its epochs from 0, evaluate always passes 0.
  virtual void start(std::uint64_t epoch) = 0;
  /// Sets inputs, targets and, if there are any, sample weights of the next batch; false after the
  /// last one. A tensor for each of inputs() and targets(), dense, of the same number of samples,
  /// at least 1, in any memory. Their elements do not change until the following call.
  virtual bool next(Batch& out_batch) = 0;
};

}  // namespace tenon
