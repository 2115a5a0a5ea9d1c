// SPDX-License-Identifier: Apache-2.0
#include "serve/batch.h"

#include <fmt/core.h>

#include <algorithm>

namespace tenon::serve {

std::int64_t count_samples(std::span<const Request> requests) {
  std::int64_t samples = 0;
  for (const Request& request : requests) samples += request.samples;
  return samples;
}

std::int64_t padded_size(std::int64_t samples, std::span<const std::int64_t> sizes) {
  return *std::ranges::lower_bound(sizes, samples);
}

NamedTensors join(std::span<const Request> requests, std::int64_t size, BatchPadding padding) {
  const NamedTensors& first = requests.front().inputs;
  const auto is_dense = [](const NamedTensors::value_type& input) { return input.second.is_dense(); };
  if (requests.size() == 1 && requests.front().samples == size && std::ranges::all_of(first, is_dense)) return first;
  NamedTensors joined;
  for (const auto& [name, example] : first) {
    Shape shape = example.shape();
    shape.set(0, size);
    Tensor rows = Tensor::empty(example.dtype(), shape);
    std::int64_t at = 0;
    for (const Request& request : requests) {
      rows.narrow(0, at, request.samples).copy_from(request.inputs.at(name));
      at += request.samples;
    }
    if (at < size) {
      Tensor rest = rows.narrow(0, at, size - at);
      if (padding == BatchPadding::zeros) {
        rest.fill(0);
      } else {
        rest.copy_from(rows.narrow(0, at - 1, 1).expand(rest.shape()));
      }
    }
    joined.emplace(name, std::move(rows));
  }
  return joined;
}

std::vector<NamedTensors> split(const NamedTensors& outputs, std::span<const Request> requests, std::int64_t size) {
  std::vector<NamedTensors> parts(requests.size());
  for (const auto& [name, output] : outputs) {
    if (!output.defined()) throw NoBatchAxis(fmt::format("batcher: output '{}' is an undefined tensor", name));
    if (output.shape().rank() == 0 || output.shape()[0] != size)
      throw NoBatchAxis(fmt::format("batcher: output '{}' is {}, expected the batch of {} as its first axis", name, output.str(), size));
    std::int64_t at = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      parts[i].emplace(name, output.narrow(0, at, requests[i].samples).to_host());
      at += requests[i].samples;
    }
  }
  return parts;
}

}  // namespace tenon::serve
