// SPDX-License-Identifier: Apache-2.0
// train/datasets/dataset_range.h - a contiguous range of a data set, without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

#include "platform/per_thread.h"

namespace tenon::train {

/// Samples [begin, end) of another data set.
class DatasetRange final : public Dataset {
 public:
  DatasetRange(std::shared_ptr<const Dataset> data, std::int64_t begin, std::int64_t end, std::string name)
      : Dataset(data->inputs(), data->targets()), data_(std::move(data)), name_(std::move(name)), begin_(begin), size_(end - begin) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }
  Tensor sample_weights() const override {
    const Tensor all = data_->sample_weights();
    return all.defined() ? all.slice(0, begin_, begin_ + size_) : all;
  }
  bool is_in_memory() const override { return data_->is_in_memory(); }

  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    data_->gather(shifted(indices), inputs, targets);
  }
  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, std::span<Tensor> inputs,
                        std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    data_->gather_augmented(shifted(indices), epoch, inputs, targets);
  }

 private:
  /// The indices in the whole data set, valid until the thread's next call.
  std::span<const std::int64_t> shifted(std::span<const std::int64_t> indices) const {
    // Workers gather concurrently and must not allocate for each batch.
    static constinit const platform::PerThread<std::vector<std::int64_t>> buffers;
    std::vector<std::int64_t>& shifted = *buffers;
    shifted.assign(indices.begin(), indices.end());
    for (std::int64_t& index : shifted) index += begin_;
    return shifted;
  }

  std::shared_ptr<const Dataset> data_;
  std::string name_;
  std::int64_t begin_, size_;
};

}  // namespace tenon::train
