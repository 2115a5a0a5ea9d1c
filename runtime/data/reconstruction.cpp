// SPDX-License-Identifier: Apache-2.0
// data/reconstruction.cpp - samples that are their own targets.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <tenon/data.h>

#include "platform/per_thread.h"

namespace tenon {
namespace {

class Reconstruction final : public Dataset {
 public:
  explicit Reconstruction(std::shared_ptr<const Dataset> data) : Dataset(data->x_type(), data->x_type()), data_(std::move(data)) {
    if (data_->inputs().size() != 1)
      throw Error(data_->name() + ": reconstruct: expected one input, got " + std::to_string(data_->inputs().size()));
  }

  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  Tensor sample_weights() const override { return data_->sample_weights(); }
  bool is_in_memory() const override { return data_->is_in_memory(); }

  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    data_->gather(indices, inputs, unused_targets(indices.size()));
    std::memcpy(targets[0].raw(), inputs[0].raw(), static_cast<std::size_t>(inputs[0].size_bytes()));
  }
  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, std::span<Tensor> inputs,
                        std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    data_->gather(indices, targets, unused_targets(indices.size()));  // the target is the sample without augmentation
    data_->gather_augmented(indices, epoch, inputs, unused_targets(indices.size()));
  }

 private:
  /// Buffers for the unused targets, those of a thread, so that gathering needs no lock and allocates only when the batch size changes.
  std::span<Tensor> unused_targets(std::size_t count) const {
    static constinit const platform::PerThread<std::vector<Tensor>> of_threads;
    std::vector<Tensor>& buffers = *of_threads;
    const std::vector<SampleType>& types = data_->targets();
    buffers.resize(types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Shape shape = types[i].shape.with_batch(static_cast<std::int64_t>(count));
      if (buffers[i].dtype() != types[i].dtype || !(buffers[i].shape() == shape)) buffers[i] = Tensor::empty(types[i].dtype, shape);
    }
    return buffers;
  }

  std::shared_ptr<const Dataset> data_;
};

}  // namespace

std::shared_ptr<const Dataset> reconstruct(std::shared_ptr<const Dataset> data) {
  if (!data) throw Error("reconstruct: expected a data set, got none");
  return std::make_shared<const Reconstruction>(std::move(data));
}

}  // namespace tenon
