// SPDX-License-Identifier: Apache-2.0
// data/augment.cpp - random crops and flips, in place on the samples of a batch.
#include <tenon/sdk/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/data.h>

#include "data/streams.h"

namespace tenon {
namespace {

/// The changes of one sample: the crop starts `down` and `right` of the image's corner (negative: above, left).
struct Change {
  std::int64_t down = 0, right = 0;
  bool flip_horizontal = false, flip_vertical = false;
};

struct Image {
  std::int64_t channels, height, width;
};

/// out[y][x] = in[y + down][x + right], or the fill outside the image. Rows are processed so that each is read before it is overwritten.
template <class T>
void shift(T* plane, const Image& image, const Change& change, T fill) {
  const std::int64_t height = image.height, width = image.width;
  const std::int64_t begin = std::max<std::int64_t>(0, -change.right), end = std::min(width, width - change.right);
  for (std::int64_t step = 0; step < height; ++step) {
    const std::int64_t y = change.down >= 0 ? step : height - 1 - step;
    const std::int64_t from = y + change.down;
    T* row = plane + y * width;
    if (from < 0 || from >= height) {
      std::fill(row, row + width, fill);
      continue;
    }
    std::memmove(row + begin, plane + from * width + begin + change.right, static_cast<std::size_t>(end - begin) * sizeof(T));
    std::fill(row, row + begin, fill);
    std::fill(row + end, row + width, fill);
  }
}

template <class T>
void flip(T* plane, const Image& image, const Change& change) {
  if (change.flip_horizontal) {
    for (std::int64_t y = 0; y < image.height; ++y) std::reverse(plane + y * image.width, plane + (y + 1) * image.width);
  }
  if (change.flip_vertical) {
    for (std::int64_t y = 0; y < image.height / 2; ++y) {
      T* other = plane + (image.height - 1 - y) * image.width;
      std::swap_ranges(plane + y * image.width, plane + (y + 1) * image.width, other);
    }
  }
}

class AugmentedDataset final : public Dataset {
 public:
  AugmentedDataset(std::shared_ptr<const Dataset> data, const AugmentOptions& options)
      : Dataset(data->inputs(), data->targets()), data_(std::move(data)), options_(options) {
    const SampleType& x = x_type();
    const auto reject = [&](const std::string& what) { throw Error(data_->name() + ": augment: " + what); };
    if (inputs().size() != 1) reject("expected one input, got " + std::to_string(inputs().size()));
    if (x.shape.rank() != 2 && x.shape.rank() != 3) {
      reject("expected images (C,H,W) or (H,W), got samples " + std::string(name_of(x.dtype)) + x.shape.str());
    }
    if (x.dtype != DType::f32 && x.dtype != DType::f64 && x.dtype != DType::u8) {
      reject("expected images of f32, f64 or u8, got " + std::string(name_of(x.dtype)));
    }
    const std::size_t first = x.shape.rank() - 2;
    image_ = {first == 1 ? x.shape[0] : 1, x.shape[first], x.shape[first + 1]};
    const std::int64_t side = std::min(image_.height, image_.width);
    if (options_.crop_padding < 0 || (options_.crop_padding > 0 && options_.crop_padding >= side)) {
      reject("expected a padding of 0 to " + std::to_string(side - 1) + ", less than the sides of " + x.shape.str() + ", got " +
             std::to_string(options_.crop_padding));
    }
    if (options_.fill.size() == 1) options_.fill.resize(static_cast<std::size_t>(image_.channels), options_.fill[0]);
    if (static_cast<std::int64_t>(options_.fill.size()) != image_.channels) {
      reject("expected one fill, or " + std::to_string(image_.channels) + " for " + x.shape.str() + ", got " +
             std::to_string(options_.fill.size()));
    }
  }

  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  Tensor sample_weights() const override { return data_->sample_weights(); }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    data_->gather(indices, inputs, targets);
  }

  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, std::span<Tensor> inputs,
                        std::span<Tensor> targets) const override {
    data_->gather_augmented(indices, epoch, inputs, targets);
    Tensor& x = inputs[0];
    if (x.dtype() == DType::f32)
      change(indices, epoch, x.data<float>());
    else if (x.dtype() == DType::f64)
      change(indices, epoch, x.data<double>());
    else
      change(indices, epoch, x.data<std::uint8_t>());
  }

 private:
  Change draw(std::int64_t index, std::uint64_t epoch) const {
    const sdk::random::Lanes lanes = sdk::random::lanes_of({options_.seed, epoch, data::stream_of_augmentation}, index);
    const auto positions = static_cast<std::uint64_t>(2 * options_.crop_padding + 1);
    const auto offset = [&](std::uint32_t lane) {
      return static_cast<std::int64_t>(std::uint64_t{lane} * positions >> 32) - options_.crop_padding;
    };
    return {offset(lanes.x[0]), offset(lanes.x[1]), options_.flip_horizontal && lanes.x[2] >> 31 != 0,
            options_.flip_vertical && lanes.x[3] >> 31 != 0};
  }

  template <class T>
  void change(std::span<const std::int64_t> indices, std::uint64_t epoch, T* plane) const {
    for (const std::int64_t index : indices) {
      const Change change = draw(index, epoch);
      for (std::int64_t c = 0; c < image_.channels; ++c, plane += image_.height * image_.width) {
        if (change.down != 0 || change.right != 0) shift(plane, image_, change, static_cast<T>(options_.fill[static_cast<std::size_t>(c)]));
        flip(plane, image_, change);
      }
    }
  }

  std::shared_ptr<const Dataset> data_;
  AugmentOptions options_;
  Image image_{};
};

}  // namespace

std::shared_ptr<const Dataset> augment(std::shared_ptr<const Dataset> data, const AugmentOptions& options) {
  if (!data) throw Error("augment: expected a data set, got none");
  if (options.is_identity()) return data;
  return std::make_shared<const AugmentedDataset>(std::move(data), options);
}

}  // namespace tenon
