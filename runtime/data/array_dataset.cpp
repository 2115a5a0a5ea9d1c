// data/array_dataset.cpp - samples in host memory, scaled as they are gathered.
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

template <class From, class To>
void scale_rows(const Tensor& from, std::span<const std::int64_t> indices, Tensor& to, std::int64_t row, const Scaling& scaling) {
  const From* source = from.data<From>();
  To* target = to.data<To>();
  for (const std::int64_t index : indices) {
    scale_row(source + index * row, target, row, static_cast<To>(scaling.scale), static_cast<To>(scaling.offset));
    target += row;
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

Tensor dense_on_host(const Tensor& t) {
  return t.on_host() && t.is_dense() ? t : t.to_host();
}

}  // namespace

ArrayDataset::ArrayDataset(const Tensor& x, const Tensor& y, const ArrayOptions& options) : options_(options) {
  const std::string& what = options_.name;
  if (!x.defined() || !y.defined()) throw Error(what + ": wanted x and y, got an undefined tensor");
  if (x.shape().rank() == 0 || y.shape().rank() == 0 || x.shape()[0] != y.shape()[0]) {
    throw Error(what + ": wanted as many targets as samples, got x " + x.str() + " and y " + y.str());
  }
  const bool untouched = x.dtype() == options_.x_dtype && options_.scaling.is_identity();
  if (!untouched && !scales(x.dtype(), options_.x_dtype)) {
    throw Error(what + ": x " + x.str() + " does not scale to " + name_of(options_.x_dtype) +
                "; wanted u8, f32 or f64 to f32 or f64, or x_dtype " + name_of(x.dtype()) + " unscaled");
  }
  if (options_.targets != Targets::as_given && !options_.num_classes) throw Error(what + ": one-hot targets want num_classes, got none");
  x_ = dense_on_host(x);
  y_ = options_.num_classes ? data::as_labels(what, y, *options_.num_classes) : dense_on_host(y);
  x_type_ = {options_.x_dtype, without_first(x_.shape())};
  y_type_ = {y_.dtype(), without_first(y_.shape())};
  if (options_.targets != Targets::as_given) y_type_ = {DType::f32, {*options_.num_classes}};
}

void ArrayDataset::gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const {
  check_batch(indices, x, y);
  const std::int64_t row = x_type_.shape.count();
  if (x_.dtype() == x_type_.dtype && options_.scaling.is_identity()) {
    copy_rows(x_, indices, x, row * size_of(x_.dtype()));
  } else {
    const auto scale = [&](auto from, auto to) { scale_rows<decltype(from), decltype(to)>(x_, indices, x, row, options_.scaling); };
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

ArrayDataset ArrayDataset::slice(std::int64_t begin, std::int64_t end, const std::string& name) const {
  if (begin < 0 || begin > end || end > size()) {
    throw Error(options_.name + ": slice: wanted 0 <= begin <= end <= " + std::to_string(size()) + ", got [" + std::to_string(begin) +
                ", " + std::to_string(end) + ")");
  }
  ArrayDataset part = *this;
  part.options_.name = name;
  part.x_ = x_.slice(0, begin, end);
  part.y_ = y_.slice(0, begin, end);
  return part;
}

}  // namespace tenon
