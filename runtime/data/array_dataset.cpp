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

/// body(sample) for each index. Shuffled samples lie where no hardware prefetcher looks, so their first lines are fetched some samples
/// ahead.
template <class T, class Body>
void for_each_sample(const T* samples, std::int64_t size, std::span<const std::int64_t> indices, const Body& body) {
  constexpr std::size_t ahead = 8;
  constexpr std::int64_t line = 64, max_bytes = 4096;  // bytes; from then on the hardware follows
  const std::int64_t fetched = std::min(max_bytes, size * static_cast<std::int64_t>(sizeof(T)));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + ahead < indices.size()) {
      const auto* const next = reinterpret_cast<const char*>(samples + indices[i + ahead] * size);
      for (std::int64_t at = 0; at < fetched; at += line) __builtin_prefetch(next + at);
    }
    body(samples + indices[i] * size);
  }
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
  for_each_sample(source, row, indices, [&](const From* at) {
    for (const Scaling& scaling : channels) {
      scale_row(at, target, part, static_cast<To>(scaling.scale), static_cast<To>(scaling.offset));
      at += part;
      target += part;
    }
  });
}

void copy_rows(const Tensor& from, std::span<const std::int64_t> indices, Tensor& to, std::int64_t row_bytes) {
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.raw());
  for_each_sample(source, row_bytes, indices, [&](const std::byte* sample) {
    std::memcpy(target, sample, static_cast<std::size_t>(row_bytes));
    target += row_bytes;
  });
}

/// The bytes of a row of a batch.
std::int64_t bytes_of(const SampleType& type) {
  return type.shape.count() * size_of(type.dtype);
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

bool is_identity(const ArrayOptions& options) {
  if (options.channels.empty()) return options.scaling.is_identity();
  return std::all_of(options.channels.begin(), options.channels.end(), [](const Scaling& s) { return s.is_identity(); });
}

/// Errors  arrays that are undefined or differ in the number of samples.
void check_counts(const std::string& what, const std::vector<NamedTensor>& inputs, const std::vector<NamedTensor>& targets) {
  const auto has_samples = [](const NamedTensor& array) { return array.tensor.defined() && array.tensor.shape().rank() > 0; };
  for (const auto* arrays : {&inputs, &targets}) {
    for (const NamedTensor& array : *arrays) {
      if (!array.tensor.defined()) throw Error(what + ": expected " + array.name + ", got an undefined tensor");
      if (!inputs.empty() && has_samples(inputs[0]) && has_samples(array) && inputs[0].tensor.shape()[0] == array.tensor.shape()[0])
        continue;
      throw Error(what + ": expected as many " + (arrays == &inputs ? "inputs" : "targets") + " as samples, got " + inputs[0].name + " " +
                  inputs[0].tensor.str() + " and " + array.name + " " + array.tensor.str());
    }
  }
}

std::vector<SampleType> input_types(const std::vector<NamedTensor>& inputs, const std::vector<NamedTensor>& targets,
                                    const ArrayOptions& options) {
  const std::string& what = options.name;
  check_counts(what, inputs, targets);
  std::vector<SampleType> types;
  for (const auto& [name, tensor] : inputs) types.push_back({tensor.dtype(), without_first(tensor.shape()), name});
  if (inputs.size() != 1) {
    if (is_identity(options)) return types;
    throw Error(what + ": expected one input for a scaling, got " + std::to_string(inputs.size()));
  }
  const Tensor& x = inputs[0].tensor;
  if (!(x.dtype() == options.x_dtype && is_identity(options)) && !scales(x.dtype(), options.x_dtype)) {
    throw Error(what + ": x " + x.str() + " does not scale to " + name_of(options.x_dtype) +
                "; expected u8, f32 or f64 scaled to f32 or f64, or unscaled x_dtype " + name_of(x.dtype()));
  }
  if (!options.channels.empty() && (x.shape().rank() < 2 || x.shape()[1] != static_cast<std::int64_t>(options.channels.size()))) {
    throw Error(what + ": expected a scaling for each index of a sample's first axis, got " + std::to_string(options.channels.size()) +
                " for x " + x.str());
  }
  types[0].dtype = options.x_dtype;
  return types;
}

std::vector<SampleType> target_types(const std::vector<NamedTensor>& inputs, const std::vector<NamedTensor>& targets,
                                     const ArrayOptions& options) {
  check_counts(options.name, inputs, targets);
  if (targets.size() != 1 && (options.num_classes || options.targets != Targets::as_given))
    throw Error(options.name + ": expected one target for num_classes and one-hot targets, got " + std::to_string(targets.size()));
  if (options.targets != Targets::as_given) {
    if (!options.num_classes) throw Error(options.name + ": one-hot targets require num_classes; set it");
    return {{DType::f32, {*options.num_classes}, targets[0].name}};
  }
  std::vector<SampleType> types;
  for (const auto& [name, tensor] : targets)
    types.push_back({options.num_classes ? DType::i64 : tensor.dtype(), without_first(tensor.shape()), name});
  return types;
}

std::vector<NamedTensor> with_names(const std::vector<SampleType>& types, const std::vector<Tensor>& tensors) {
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < types.size(); ++i) named.push_back({types[i].name, tensors[i]});
  return named;
}

}  // namespace

ArrayDataset::ArrayDataset(const Tensor& x, const Tensor& y, const ArrayOptions& options)
    : ArrayDataset(std::vector<NamedTensor>{{"x", x}}, std::vector<NamedTensor>{{"y", y}}, options) {}

ArrayDataset::ArrayDataset(const std::vector<NamedTensor>& inputs, const std::vector<NamedTensor>& targets, const ArrayOptions& options)
    : Dataset(input_types(inputs, targets, options), target_types(inputs, targets, options)), options_(options) {
  for (const NamedTensor& input : inputs) x_.push_back(dense_on_host(input.tensor));
  for (const NamedTensor& target : targets) {
    const auto& classes = options_.num_classes;
    y_.push_back(classes ? data::as_labels(options_.name, target.tensor, *classes) : dense_on_host(target.tensor));
  }
  options_.sample_weights = checked_weights(options_.name, options_.sample_weights, size());
}

std::vector<NamedTensor> ArrayDataset::input_arrays() const {
  return with_names(inputs(), x_);
}
std::vector<NamedTensor> ArrayDataset::target_arrays() const {
  return with_names(targets(), y_);
}

void ArrayDataset::gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const {
  check_batch(indices, inputs, targets);
  if (is_unscaled()) {
    for (std::size_t i = 0; i < x_.size(); ++i) copy_rows(x_[i], indices, inputs[i], bytes_of(this->inputs()[i]));
  } else {
    const Tensor& stored = x();
    const std::int64_t row = x_type().shape.count();
    const std::span<const Scaling> channels = options_.channels.empty() ? std::span(&options_.scaling, 1) : std::span(options_.channels);
    const auto scale = [&](auto from, auto to) { scale_rows<decltype(from), decltype(to)>(stored, indices, inputs[0], row, channels); };
    const auto scale_from = [&](auto from) { x_type().dtype == DType::f32 ? scale(from, float{}) : scale(from, double{}); };
    if (stored.dtype() == DType::u8)
      scale_from(std::uint8_t{});
    else if (stored.dtype() == DType::f32)
      scale_from(float{});
    else
      scale_from(double{});
  }
  switch (options_.targets) {
    case Targets::as_given:
      for (std::size_t i = 0; i < y_.size(); ++i) copy_rows(y_[i], indices, targets[i], bytes_of(this->targets()[i]));
      break;
    case Targets::one_hot:
      one_hot_rows(y_[0], indices, targets[0], *options_.num_classes, 0.0f, 1.0f);
      break;
    case Targets::soft_one_hot:
      one_hot_rows(y_[0], indices, targets[0], *options_.num_classes, 0.1f, 0.9f);
      break;
  }
}

bool ArrayDataset::is_unscaled() const {
  return x_.size() > 1 || (x().dtype() == x_type().dtype && is_identity(options_));
}

ArrayDataset ArrayDataset::rescaled(const Scaling& scaling, const std::vector<Scaling>& channels) const {
  ArrayOptions options = options_;
  options.scaling = scaling;
  options.channels = channels;
  return ArrayDataset(input_arrays(), target_arrays(), options);
}

ArrayDataset ArrayDataset::slice(std::int64_t begin, std::int64_t end, const std::string& name) const {
  if (begin < 0 || begin > end || end > size()) {
    throw Error(options_.name + ": slice: expected 0 <= begin <= end <= " + std::to_string(size()) + ", got [" + std::to_string(begin) +
                ", " + std::to_string(end) + ")");
  }
  ArrayDataset part = *this;
  part.options_.name = name;
  for (auto* arrays : {&part.x_, &part.y_}) {
    for (Tensor& array : *arrays) array = array.slice(0, begin, end);
  }
  if (options_.sample_weights.defined()) part.options_.sample_weights = options_.sample_weights.slice(0, begin, end);
  return part;
}

}  // namespace tenon
