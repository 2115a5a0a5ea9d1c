// SPDX-License-Identifier: Apache-2.0
// data/reconstruction.cpp - samples that are their own targets.
#include <cstring>
#include <utility>

#include <tenon/data.h>

namespace tenon {
namespace {

class Reconstruction final : public Dataset {
 public:
  explicit Reconstruction(std::shared_ptr<const Dataset> data) : data_(std::move(data)) {}

  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  SampleType x_type() const override { return data_->x_type(); }
  SampleType y_type() const override { return data_->x_type(); }
  Tensor sample_weights() const override { return data_->sample_weights(); }

  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    data_->gather(indices, x, unused_labels(indices.size()));
    std::memcpy(y.raw(), x.raw(), static_cast<std::size_t>(x.size_bytes()));
  }
  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    data_->gather(indices, y, unused_labels(indices.size()));  // the target is the sample without augmentation
    data_->gather_augmented(indices, epoch, x, unused_labels(indices.size()));
  }

 private:
  /// A buffer for the unused labels, one per thread, so that gathering needs no lock and allocates only when the batch size changes.
  Tensor& unused_labels(std::size_t count) const {
    static thread_local Tensor buffer;
    const SampleType type = data_->y_type();
    const Shape shape = type.shape.with_batch(static_cast<std::int64_t>(count));
    if (buffer.dtype() != type.dtype || !(buffer.shape() == shape)) buffer = Tensor::empty(type.dtype, shape);
    return buffer;
  }

  std::shared_ptr<const Dataset> data_;
};

}  // namespace

std::shared_ptr<const Dataset> reconstruct(std::shared_ptr<const Dataset> data) {
  if (!data) throw Error("reconstruct: expected a data set, got none");
  return std::make_shared<const Reconstruction>(std::move(data));
}

}  // namespace tenon
