// SPDX-License-Identifier: Apache-2.0
// core/tensor_views.cpp - views: the same memory with other shapes and strides.
#include <limits>

#include <tenon/tensor.h>

namespace tenon {
namespace {

std::string text_of(std::int64_t value) {
  return std::to_string(value);
}

/// Works for strides of either sign: unsigned arithmetic wraps, so a negative offset steps back.
std::uint64_t moved(std::uint64_t address, std::int64_t offset, DType dtype) {
  return address + static_cast<std::uint64_t>(offset * size_of(dtype));
}

}  // namespace

std::size_t Tensor::axis_of(std::int64_t axis, const char* view) const {
  if (!defined()) throw Error(std::string("Tensor::") + view + ": got an undefined tensor");
  return static_cast<std::size_t>(resolve_axis(axis, shape_.rank(), std::string("Tensor::") + view + " of " + str()));
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (!defined()) throw Error("Tensor::reshape: got an undefined tensor");
  if (shape.count() != count()) {
    throw Error("Tensor::reshape: " + str() + " has " + text_of(count()) + " elements, " + shape.str() + " expects " +
                text_of(shape.count()));
  }
  if (!is_dense()) {
    throw Error("Tensor::reshape: expected a dense tensor, got a strided view " + str() + "; call contiguous() for a dense copy");
  }
  return make(storage_, address_, dtype_, shape);
}

Tensor Tensor::slice(std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  const std::size_t a = axis_of(axis, "slice");
  const std::int64_t size = shape_[a];
  const auto fail = [&](const std::string& expected) {
    throw Error("Tensor::slice of " + str() + ": expected " + expected + " on axis " + std::to_string(a) + ", got [" + text_of(begin) +
                ", " + text_of(end) + ")" + (step == 1 ? "" : " step " + text_of(step)));
  };
  if (step == 0) fail("a step other than 0");
  if (step > 0 && (begin < 0 || begin > end || end > size)) fail("0 <= begin <= end <= " + text_of(size));
  if (step < 0 && (end < -1 || end > begin || begin >= size)) fail(text_of(size) + " > begin >= end >= -1");
  // The number of steps, rounded up; counted so that a step of any size fits.
  const std::int64_t distance = step > 0 ? end - begin : begin - end;
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  const std::int64_t length = distance == 0 ? 0 : 1 + static_cast<std::int64_t>(static_cast<std::uint64_t>(distance - 1) / stride);
  Tensor view = *this;
  view.shape_.set(a, length);
  if (view.count() > 0) view.address_ = moved(address_, begin * strides_[a], dtype_);
  if (length > 1) view.strides_[a] *= step;
  return view;
}

Tensor Tensor::narrow(std::int64_t axis, std::int64_t begin, std::int64_t length) const {
  const std::size_t a = axis_of(axis, "narrow");
  if (begin < 0 || length < 0 || begin > shape_[a] || length > shape_[a] - begin) {
    throw Error("Tensor::narrow of " + str() + ": expected a part of [0, " + text_of(shape_[a]) + ") on axis " + std::to_string(a) +
                ", got " + text_of(length) + " from " + text_of(begin) + " on");
  }
  return slice(axis, begin, begin + length);
}

Tensor Tensor::select(std::int64_t axis, std::int64_t index) const {
  const std::size_t a = axis_of(axis, "select");
  const std::int64_t size = shape_[a];
  if (index < -size || index >= size) {
    throw Error("Tensor::select of " + str() + ": index " + text_of(index) + " is out of range for axis " + std::to_string(a) +
                " of size " + text_of(size));
  }
  Tensor view = *this;
  view.address_ = moved(address_, (index < 0 ? index + size : index) * strides_[a], dtype_);
  view.shape_ = {};
  for (std::size_t i = 0; i < shape_.rank(); ++i) {
    if (i == a) continue;
    view.strides_[view.shape_.rank()] = strides_[i];
    view.shape_.push_back(shape_[i]);
  }
  return view;
}

Tensor Tensor::transpose(const std::vector<std::int64_t>& permutation) const {
  if (!defined()) throw Error("Tensor::transpose: got an undefined tensor");
  const std::size_t rank = shape_.rank();
  if (permutation.size() != rank) {
    throw Error("Tensor::transpose of " + str() + ": expected " + std::to_string(rank) + " axes, got " +
                std::to_string(permutation.size()));
  }
  Tensor view = *this;
  view.shape_ = {};
  std::array<bool, Shape::max_rank> seen{};
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t from = axis_of(permutation[i], "transpose");
    if (seen[from]) throw Error("Tensor::transpose of " + str() + ": axis " + std::to_string(from) + " is named twice");
    seen[from] = true;
    view.shape_.push_back(shape_[from]);
    view.strides_[i] = strides_[from];
  }
  return view;
}

Tensor Tensor::permute(const std::vector<std::int64_t>& permutation) const {
  return transpose(permutation);
}

Tensor Tensor::transpose(std::int64_t axis_a, std::int64_t axis_b) const {
  const std::size_t a = axis_of(axis_a, "transpose"), b = axis_of(axis_b, "transpose");
  std::vector<std::int64_t> permutation(shape_.rank());
  for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<std::int64_t>(i == a ? b : i == b ? a : i);
  return transpose(permutation);
}

Tensor Tensor::expand(const Shape& shape) const {
  if (!defined()) throw Error("Tensor::expand: got an undefined tensor");
  const std::size_t rank = shape.rank();
  bool fits = rank >= shape_.rank();
  const std::size_t added = fits ? rank - shape_.rank() : 0;
  Tensor view = *this;
  view.shape_ = shape;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    const std::int64_t size = i < added ? 1 : shape_[i - added];
    fits = size == shape[i] || size == 1;
    view.strides_[i] = size == shape[i] && i >= added ? strides_[i - added] : 0;
  }
  if (!fits)
    throw Error("Tensor::expand of " + str() + ": expected sizes equal to those of " + shape.str() + " or 1, counted from the last");
  if (shape.count() > std::numeric_limits<std::int64_t>::max() / size_of(dtype_)) {
    throw Error("Tensor::expand of " + str() + ": a dense " + name_of(dtype_) + shape.str() + " needs more bytes than any memory has");
  }
  return view;
}

Tensor Tensor::squeeze() const {
  if (!defined()) throw Error("Tensor::squeeze: got an undefined tensor");
  Tensor view = *this;
  for (std::size_t i = shape_.rank(); i-- > 0;) {
    if (shape_[i] == 1) view = view.select(static_cast<std::int64_t>(i), 0);
  }
  return view;
}

Tensor Tensor::squeeze(std::int64_t axis) const {
  const std::size_t a = axis_of(axis, "squeeze");
  if (shape_[a] != 1) {
    throw Error("Tensor::squeeze of " + str() + ": expected an axis of size 1, got axis " + std::to_string(a) + " of size " +
                text_of(shape_[a]));
  }
  return select(axis, 0);
}

Tensor Tensor::unsqueeze(std::int64_t axis) const {
  if (!defined()) throw Error("Tensor::unsqueeze: got an undefined tensor");
  const std::size_t rank = shape_.rank();
  const auto a = static_cast<std::size_t>(resolve_axis(axis, rank + 1, "Tensor::unsqueeze of " + str()));
  Tensor view = *this;
  view.shape_ = {};
  for (std::size_t i = 0; i <= rank; ++i) {
    const bool is_new = i == a;
    const std::size_t from = i < a ? i : i - 1;
    // The stride of an axis of size 1 is never used; this one keeps a dense tensor dense in its new shape.
    const std::int64_t stride = !is_new ? strides_[from] : a < rank ? strides_[a] * shape_[a] : 1;
    view.shape_.push_back(is_new ? 1 : shape_[from]);
    view.strides_[i] = stride;
  }
  return view;
}

Tensor Tensor::flip(std::int64_t axis) const {
  const std::size_t a = axis_of(axis, "flip");
  return slice(axis, shape_[a] - 1, -1, -1);
}

Tensor Tensor::diagonal(std::int64_t offset, std::int64_t axis_a, std::int64_t axis_b) const {
  const std::size_t a = axis_of(axis_a, "diagonal"), b = axis_of(axis_b, "diagonal");
  if (a == b) throw Error("Tensor::diagonal of " + str() + ": expected two axes, got axis " + std::to_string(a) + " twice");
  const std::int64_t rows = shape_[a], columns = shape_[b];
  const bool outside = offset >= columns || offset <= -rows;  // also keeps the sums below in range
  const std::int64_t first_row = offset < 0 && !outside ? -offset : 0, first_column = offset > 0 && !outside ? offset : 0;
  const std::int64_t length = outside ? 0 : std::min(rows - first_row, columns - first_column);
  Tensor view = *this;
  view.shape_ = {};
  for (std::size_t i = 0; i < shape_.rank(); ++i) {
    if (i == a || i == b) continue;
    view.strides_[view.shape_.rank()] = strides_[i];
    view.shape_.push_back(shape_[i]);
  }
  view.strides_[view.shape_.rank()] = strides_[a] + strides_[b];
  view.shape_.push_back(length);
  if (view.count() > 0) view.address_ = moved(address_, first_row * strides_[a] + first_column * strides_[b], dtype_);
  return view;
}

}  // namespace tenon
