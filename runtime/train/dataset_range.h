// train/dataset_range.h - part of a data set as one of its own, without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::train {

/// Samples [begin, end) of another data set.
class DatasetRange final : public Dataset {
 public:
  DatasetRange(std::shared_ptr<const Dataset> data, std::int64_t begin, std::int64_t end, std::string name)
      : data_(std::move(data)), name_(std::move(name)), begin_(begin), size_(end - begin) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  SampleType x_type() const override { return data_->x_type(); }
  SampleType y_type() const override { return data_->y_type(); }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }

  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    data_->gather(moved(indices), x, y);
  }
  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    data_->gather_augmented(moved(indices), epoch, x, y);
  }

 private:
  /// The indices in the whole data set, valid until the thread's next call.
  std::span<const std::int64_t> moved(std::span<const std::int64_t> indices) const {
    thread_local std::vector<std::int64_t> moved;  // several workers gather at the same time, and none may allocate each time
    moved.assign(indices.begin(), indices.end());
    for (std::int64_t& index : moved) index += begin_;
    return moved;
  }

  std::shared_ptr<const Dataset> data_;
  std::string name_;
  std::int64_t begin_, size_;
};

}  // namespace tenon::train
