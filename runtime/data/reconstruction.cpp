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

  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    data_->gather(indices, x, labels(indices.size()));
    std::memcpy(y.raw(), x.raw(), static_cast<std::size_t>(x.size_bytes()));
  }
  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    data_->gather(indices, y, labels(indices.size()));  // what was there before the changes
    data_->gather_augmented(indices, epoch, x, labels(indices.size()));
  }

 private:
  /// Somewhere for the targets that nobody asks for. A thread's own: gathering takes no lock, and allocates when batches grow alone.
  Tensor& labels(std::size_t count) const {
    static thread_local Tensor kept;
    const SampleType type = data_->y_type();
    Shape shape{static_cast<std::int64_t>(count)};
    for (const std::int64_t size : type.shape) shape.push_back(size);
    if (kept.dtype() != type.dtype || !(kept.shape() == shape)) kept = Tensor::empty(type.dtype, shape);
    return kept;
  }

  std::shared_ptr<const Dataset> data_;
};

}  // namespace

std::shared_ptr<const Dataset> reconstruct(std::shared_ptr<const Dataset> data) {
  if (!data) throw Error("reconstruct: wanted a data set, got none");
  return std::make_shared<const Reconstruction>(std::move(data));
}

}  // namespace tenon
