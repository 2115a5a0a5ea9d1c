// SPDX-License-Identifier: Apache-2.0
// Helpers of the data tests.
#pragma once

#include <string>
#include <vector>

#include <tenon/data.h>

#include "testing.h"

namespace tenon::test {

struct Gathered {
  Tensor x, y;
};

inline Tensor empty_batch_tensor(const SampleType& type, std::size_t count) {
  Shape shape{static_cast<std::int64_t>(count)};
  for (const std::int64_t size : type.shape) shape.push_back(size);
  return Tensor::zeros(type.dtype, shape);
}

inline Gathered gather(const Dataset& data, const std::vector<std::int64_t>& indices) {
  Gathered batch{empty_batch_tensor(data.x_type(), indices.size()), empty_batch_tensor(data.y_type(), indices.size())};
  data.gather(indices, batch.x, batch.y);
  return batch;
}

inline Gathered gather_augmented(const Dataset& data, const std::vector<std::int64_t>& indices, std::uint64_t epoch) {
  Gathered batch{empty_batch_tensor(data.x_type(), indices.size()), empty_batch_tensor(data.y_type(), indices.size())};
  data.gather_augmented(indices, epoch, {&batch.x, 1}, {&batch.y, 1});
  return batch;
}

template <class T>
std::vector<T> values_of(const Tensor& t) {
  return t.to_vector<T>();
}

}  // namespace tenon::test
