// SPDX-License-Identifier: Apache-2.0
// data/array_dataset.cpp - samples in host memory, scaled as they are gathered.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <tenon/data.h>

#include "data/labels.h"

namespace tenon {
namespace {

Shape without_first(const Shape& shape) {
  return Shape(shape.dims().subspan(1));
}

bool scales(DType from, DType to) {
  const bool real_to = to == DType::f32 || to == DType::f64;
  return real_to && (from == DType::u8 || from == DType::f32 || from == DType::f64);
}

/// Without aliasing the loop is one load, convert, multiply, add and store per vector.
template <class From, class To>
void scale_row(const From* __restrict from, To* __restrict to, std::int64_t count, To scale, To offset) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]) * scale + offset;
}

/// Scales each channel, `row / channels` elements, with its own scaling.
template <class From, class To>
void scale_rows(const Tensor& from, std::span<const std::int64_t> indices, Tensor& to, std::int64_t row,
                std::span<const Scaling> channels) {
  const From* source = from.data<From>();
  To* target = to.data<To>();
  const std::int64_t part = row / static_cast<std::int64_t>(channels.size());
  for (const std::int64_t index : indices) {
    const From* at = source + index * row;
    for (const Scaling& scaling : channels) {
      scale_row(at, target, part, static_cast<To>(scaling.scale), static_cast<To>(scaling.offset));
      at += part;
      target += part;
    }
  }
}

void copy_rows(const Tensor& from, std::span<const std::int64_t> indices, Tensor& to, std::int64_t row_bytes) {
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.raw());
  for (const std::int64_t index : indices) {
    std::memcpy(target, source + index * row_bytes, static_cast<std::size_t>(row_bytes));
    target += row_bytes;
  }
}

void one_hot_rows(const Tensor& labels, std::span<const std::int64_t> indices, Tensor& to, std::int64_t classes, float low, float high) {
  float* row = to.data<float>();
  std::fill_n(row, static_cast<std::int64_t>(indices.size()) * classes, low);
  const auto* label = labels.data<std::int64_t>();
  for (const std::int64_t index : indices) {
    row[label[index]] = high;
    row += classes;
  }
}

/// The weights as f32. Errors  other than one number of at least 0 per sample.
Tensor checked_weights(const std::string& what, const Tensor& weights, std::int64_t count) {
  if (!weights.defined()) return {};
  if (weights.shape() != Shape{count} || weights.dtype() == DType::c64 || weights.dtype() == DType::c128) {
    throw Error(what + ": expected one sample weight per sample, " + std::to_string(count) + " numbers, got " + weights.str());
  }
  Tensor numbers = weights.to_host().to(DType::f32);
  const float* const values = numbers.data<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i]) && values[i] >= 0) continue;
    throw Error(what + ": expected sample weights of at least 0, got " + std::to_string(values[i]) + " for sample " + std::to_string(i));
  }
  return numbers;
}

Tensor dense_on_host(const Tensor& t) {
  return t.on_host() && t.is_dense() ? t : t.to_host();
}

}  // namespace

ArrayDataset::ArrayDataset(const Tensor& x, const Tensor& y, const ArrayOptions& options) : options_(options) {
  const std::string& what = options_.name;
  if (!x.defined() || !y.defined()) throw Error(what + ": expected x and y, got an undefined tensor");
  if (x.shape().rank() == 0 || y.shape().rank() == 0 || x.shape()[0] != y.shape()[0]) {
    throw Error(what + ": expected as many targets as samples, got x " + x.str() + " and y " + y.str());
  }
  if (!(x.dtype() == options_.x_dtype && has_identity_scaling()) && !scales(x.dtype(), options_.x_dtype)) {
    throw Error(what + ": x " + x.str() + " does not scale to " + name_of(options_.x_dtype) +
                "; expected u8, f32 or f64 scaled to f32 or f64, or unscaled x_dtype " + name_of(x.dtype()));
  }
  if (!options_.channels.empty() && (x.shape().rank() < 2 || x.shape()[1] != static_cast<std::int64_t>(options_.channels.size()))) {
    throw Error(what + ": expected a scaling for each index of a sample's first axis, got " + std::to_string(options_.channels.size()) +
                " for x " + x.str());
  }
  if (options_.targets != Targets::as_given && !options_.num_classes) throw Error(what + ": one-hot targets require num_classes; set it");
  x_ = dense_on_host(x);
  y_ = options_.num_classes ? data::as_labels(what, y, *options_.num_classes) : dense_on_host(y);
  options_.sample_weights = checked_weights(what, options_.sample_weights, x_.shape()[0]);
  x_type_ = {options_.x_dtype, without_first(x_.shape())};
  y_type_ = {y_.dtype(), without_first(y_.shape())};
  if (options_.targets != Targets::as_given) y_type_ = {DType::f32, {*options_.num_classes}};
}

void ArrayDataset::gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const {
  check_batch(indices, x, y);
  const std::int64_t row = x_type_.shape.count();
  if (is_unscaled()) {
    copy_rows(x_, indices, x, row * size_of(x_.dtype()));
  } else {
    const std::span<const Scaling> channels = options_.channels.empty() ? std::span(&options_.scaling, 1) : std::span(options_.channels);
    const auto scale = [&](auto from, auto to) { scale_rows<decltype(from), decltype(to)>(x_, indices, x, row, channels); };
    const auto scale_from = [&](auto from) { x_type_.dtype == DType::f32 ? scale(from, float{}) : scale(from, double{}); };
    if (x_.dtype() == DType::u8)
      scale_from(std::uint8_t{});
    else if (x_.dtype() == DType::f32)
      scale_from(float{});
    else
      scale_from(double{});
  }
  switch (options_.targets) {
    case Targets::as_given:
      copy_rows(y_, indices, y, y_type_.shape.count() * size_of(y_.dtype()));
      break;
    case Targets::one_hot:
      one_hot_rows(y_, indices, y, *options_.num_classes, 0.0f, 1.0f);
      break;
    case Targets::soft_one_hot:
      one_hot_rows(y_, indices, y, *options_.num_classes, 0.1f, 0.9f);
      break;
  }
}

bool ArrayDataset::has_identity_scaling() const {
  if (options_.channels.empty()) return options_.scaling.is_identity();
  return std::all_of(options_.channels.begin(), options_.channels.end(), [](const Scaling& s) { return s.is_identity(); });
}

bool ArrayDataset::is_unscaled() const {
  return x_.dtype() == x_type_.dtype && has_identity_scaling();
}

ArrayDataset ArrayDataset::rescaled(const Scaling& scaling, const std::vector<Scaling>& channels) const {
  ArrayOptions options = options_;
  options.scaling = scaling;
  options.channels = channels;
  return ArrayDataset(x_, y_, options);
}

ArrayDataset ArrayDataset::slice(std::int64_t begin, std::int64_t end, const std::string& name) const {
  if (begin < 0 || begin > end || end > size()) {
    throw Error(options_.name + ": slice: expected 0 <= begin <= end <= " + std::to_string(size()) + ", got [" + std::to_string(begin) +
                ", " + std::to_string(end) + ")");
  }
  ArrayDataset part = *this;
  part.options_.name = name;
  part.x_ = x_.slice(0, begin, end);
  part.y_ = y_.slice(0, begin, end);
  if (options_.sample_weights.defined()) part.options_.sample_weights = options_.sample_weights.slice(0, begin, end);
  return part;
}

}  // namespace tenon
