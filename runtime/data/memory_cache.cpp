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
      : data_(std::move(data)),
        x_(Tensor::empty(data_->x_type().dtype, data_->x_type().shape.with_batch(data_->size()))),
        y_(Tensor::empty(data_->y_type().dtype, data_->y_type().shape.with_batch(data_->size()))),
        states_(static_cast<std::size_t>(data_->size())) {}

  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  SampleType x_type() const override { return data_->x_type(); }
  SampleType y_type() const override { return data_->y_type(); }
  Tensor sample_weights() const override { return data_->sample_weights(); }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }

  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const override {
    check_batch(indices, x, y);
    // Missing samples are fetched in runs: during the first epoch, a whole batch at once.
    for (std::size_t begin = 0; begin < indices.size();) {
      std::size_t end = begin;
      while (end < indices.size() && !is_kept(indices[end])) ++end;
      if (end > begin) {
        fetch(indices.subspan(begin, end - begin), x.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)),
              y.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)));
      } else {
        copy_row(x_, indices[begin], x, static_cast<std::int64_t>(begin));
        copy_row(y_, indices[begin], y, static_cast<std::int64_t>(begin));
        ++end;
      }
      begin = end;
    }
  }

 private:
  enum State : std::uint8_t { missing, being_written, kept };

  bool is_kept(std::int64_t index) const { return states_[static_cast<std::size_t>(index)].load(std::memory_order_acquire) == kept; }

  static void copy_row(const Tensor& from, std::int64_t row_from, Tensor& to, std::int64_t row_to) {
    const std::int64_t bytes = to.shape()[0] > 0 ? to.size_bytes() / to.shape()[0] : 0;
    std::memcpy(static_cast<std::byte*>(to.raw()) + row_to * bytes, static_cast<const std::byte*>(from.raw()) + row_from * bytes,
                static_cast<std::size_t>(bytes));
  }

  /// Gathers samples into the batch and stores those that no other thread is storing.
  void fetch(std::span<const std::int64_t> indices, Tensor x, Tensor y) const {
    data_->gather(indices, x, y);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto& state = states_[static_cast<std::size_t>(indices[i])];
      std::uint8_t expected = missing;
      if (!state.compare_exchange_strong(expected, being_written, std::memory_order_acquire)) continue;
      copy_row(x, static_cast<std::int64_t>(i), x_, indices[i]);
      copy_row(y, static_cast<std::int64_t>(i), y_, indices[i]);
      state.store(kept, std::memory_order_release);
    }
  }

  std::shared_ptr<const Dataset> data_;
  mutable Tensor x_, y_;  ///< the thread that sets state i to being_written owns row i until it is kept
  mutable std::vector<std::atomic<std::uint8_t>> states_;
};

}  // namespace

std::shared_ptr<const Dataset> cache_in_memory(std::shared_ptr<const Dataset> data) {
  if (!data) throw Error("cache_in_memory: expected a data set, got none");
  return std::make_shared<const MemoryCache>(std::move(data));
}

}  // namespace tenon
