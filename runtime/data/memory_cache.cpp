// SPDX-License-Identifier: Apache-2.0
// data/memory_cache.cpp - keeps gathered samples in memory.
#include <atomic>
#include <cstring>
#include <vector>

#include <tenon/data.h>

namespace tenon {
namespace {

class MemoryCache final : public Dataset {
 public:
  explicit MemoryCache(std::shared_ptr<const Dataset> data)
      : Dataset(data->inputs(), data->targets()),
        data_(std::move(data)),
        inputs_(all_samples(inputs())),
        targets_(all_samples(targets())),
        states_(static_cast<std::size_t>(data_->size())) {}

  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  Tensor sample_weights() const override { return data_->sample_weights(); }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }

  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    // Missing samples are fetched in runs: during the first epoch, a whole batch at once.
    for (std::size_t begin = 0; begin < indices.size();) {
      std::size_t end = begin;
      while (end < indices.size() && !is_kept(indices[end])) ++end;
      if (end > begin) {
        fetch(indices.subspan(begin, end - begin), rows(inputs, begin, end), rows(targets, begin, end));
      } else {
        copy_row(inputs_, indices[begin], inputs, static_cast<std::int64_t>(begin));
        copy_row(targets_, indices[begin], targets, static_cast<std::int64_t>(begin));
        ++end;
      }
      begin = end;
    }
  }

 private:
  enum State : std::uint8_t { missing, being_written, kept };

  bool is_kept(std::int64_t index) const { return states_[static_cast<std::size_t>(index)].load(std::memory_order_acquire) == kept; }

  std::vector<Tensor> all_samples(const std::vector<SampleType>& types) const {
    std::vector<Tensor> tensors;
    for (const SampleType& type : types) tensors.push_back(Tensor::empty(type.dtype, type.shape.with_batch(data_->size())));
    return tensors;
  }
  static std::vector<Tensor> rows(std::span<const Tensor> tensors, std::size_t begin, std::size_t end) {
    std::vector<Tensor> parts;
    for (const Tensor& tensor : tensors) parts.push_back(tensor.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)));
    return parts;
  }
  static void copy_row(std::span<const Tensor> from, std::int64_t row_from, std::span<Tensor> to, std::int64_t row_to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::int64_t bytes = to[i].shape()[0] > 0 ? to[i].size_bytes() / to[i].shape()[0] : 0;
      std::memcpy(static_cast<std::byte*>(to[i].raw()) + row_to * bytes, static_cast<const std::byte*>(from[i].raw()) + row_from * bytes,
                  static_cast<std::size_t>(bytes));
    }
  }

  /// Gathers samples into the batch and stores those that no other thread is storing.
  void fetch(std::span<const std::int64_t> indices, std::vector<Tensor> inputs, std::vector<Tensor> targets) const {
    data_->gather(indices, inputs, targets);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto& state = states_[static_cast<std::size_t>(indices[i])];
      std::uint8_t expected = missing;
      if (!state.compare_exchange_strong(expected, being_written, std::memory_order_acquire)) continue;
      copy_row(inputs, static_cast<std::int64_t>(i), inputs_, indices[i]);
      copy_row(targets, static_cast<std::int64_t>(i), targets_, indices[i]);
      state.store(kept, std::memory_order_release);
    }
  }

  std::shared_ptr<const Dataset> data_;
  mutable std::vector<Tensor> inputs_, targets_;  ///< the thread that sets state i to being_written owns row i until it is kept
  mutable std::vector<std::atomic<std::uint8_t>> states_;
};

}  // namespace

std::shared_ptr<const Dataset> cache_in_memory(std::shared_ptr<const Dataset> data) {
  if (!data) throw Error("cache_in_memory: expected a data set, got none");
  return std::make_shared<const MemoryCache>(std::move(data));
}

}  // namespace tenon
