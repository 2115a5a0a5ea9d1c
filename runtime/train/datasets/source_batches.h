// SPDX-License-Identifier: Apache-2.0
// train/datasets/source_batches.h - the batches of a BatchSource, validated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tenon/batch_source.h>

#include "train/datasets/feed.h"

namespace tenon::train {

/// The names and types of a source as those of a data set without samples.
class SourceTypes final : public Dataset {
 public:
  explicit SourceTypes(const BatchSource& source) : Dataset(source.inputs(), source.targets()), name_(source.name()) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return 0; }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
  }

 private:
  std::string name_;
};

class SourceBatches final : public EpochBatches {
 public:
  /// `source` outlives it.
  explicit SourceBatches(BatchSource& source) : source_(source) {}
  std::int64_t count() const override { return source_.batches(); }
  /// Reads and drops the batches before `first_batch`.
  void start(std::uint64_t epoch, std::int64_t first_batch = 0) override;
  /// Errors  tensors of other types than the source states, or of different numbers of samples.
  const Batch* next() override;

 private:
  void check(const std::vector<SampleType>& types, const std::vector<Tensor>& tensors, std::int64_t rows) const;

  BatchSource& source_;
  Batch batch_;
  std::int64_t index_ = 0;
};

}  // namespace tenon::train
