// SPDX-License-Identifier: Apache-2.0
#include "serve/request.h"

#include <fmt/core.h>

#include <algorithm>

#include <tenon/error.h>

#include "text/counted.h"

namespace tenon::serve {

std::int64_t count_samples(const NamedTensors& inputs, std::int64_t max_batch) {
  if (inputs.empty()) throw Error("batcher: expected a request with at least one input, got none");
  const std::string& first_name = inputs.begin()->first;
  std::int64_t samples = 0;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.defined()) throw Error(fmt::format("batcher: input '{}' is an undefined tensor", name));
    if (tensor.shape().rank() == 0)
      throw Error(fmt::format("batcher: input '{}' is {}, expected a first axis of samples", name, tensor.str()));
    const std::int64_t size = tensor.shape()[0];
    if (size == 0) throw Error(fmt::format("batcher: input '{}' is {}, expected at least one sample", name, tensor.str()));
    if (samples != 0 && size != samples)
      throw Error(fmt::format("batcher: input '{}' is {}, expected {}, as input '{}' has", name, tensor.str(), counted(samples, "sample"),
                              first_name));
    samples = size;
  }
  if (samples > max_batch)
    throw Error(fmt::format("batcher: a request of {} samples, expected at most {} (max_batch): divide it into several requests", samples,
                            max_batch));
  return samples;
}

bool can_join(const NamedTensors& a, const NamedTensors& b) {
  const auto is_like = [](const NamedTensors::value_type& x, const NamedTensors::value_type& y) {
    const auto x_dims = x.second.shape().dims(), y_dims = y.second.shape().dims();
    return x.first == y.first && x.second.dtype() == y.second.dtype() && std::ranges::equal(x_dims.subspan(1), y_dims.subspan(1));
  };
  return std::ranges::equal(a, b, is_like);
}

}  // namespace tenon::serve
