// SPDX-License-Identifier: Apache-2.0
#include "serve/batcher_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include <tenon/error.h>

namespace tenon::serve {
namespace {

constexpr std::int64_t max_delay_limit_us = 1'000'000'000;

std::vector<std::int64_t> powers_of_two(std::int64_t max_batch) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < max_batch && sizes.size() < 62; size *= 2) sizes.push_back(size);
  sizes.push_back(max_batch);
  return sizes;
}

}  // namespace

BatcherOptions checked(BatcherOptions options) {
  if (options.max_batch < 1) throw Error(fmt::format("batcher: max_batch: expected at least 1, got {}", options.max_batch));
  if (options.max_delay_us < 0 || options.max_delay_us > max_delay_limit_us)
    throw Error(fmt::format("batcher: max_delay_us: expected 0 to {}, got {}", max_delay_limit_us, options.max_delay_us));
  if (options.max_queue < 1) throw Error(fmt::format("batcher: max_queue: expected at least 1, got {}", options.max_queue));
  std::vector<std::int64_t>& sizes = options.batch_sizes;
  if (sizes.empty()) sizes = powers_of_two(options.max_batch);
  if (sizes.front() < 1 || std::ranges::adjacent_find(sizes, std::greater_equal<>()) != sizes.end())
    throw Error(fmt::format("batcher: batch_sizes: expected sizes of at least 1 in ascending order, got {}", fmt::join(sizes, ", ")));
  if (sizes.back() < options.max_batch)
    throw Error(fmt::format("batcher: batch_sizes: expected the last to be at least max_batch, {}, got {}", options.max_batch,
                            fmt::join(sizes, ", ")));
  return options;
}

void check_batch_axis(const onnx::Model& model, const std::vector<std::int64_t>& batch_sizes) {
  for (const onnx::ValueType& input : model.inputs()) {
    if (!input.ranked) continue;
    if (input.shape.empty()) throw Error(fmt::format("batcher: input {} has no axes, expected a first axis of samples", input.str()));
    const onnx::Dimension& first = input.shape.front();
    if (first.is_fixed() && (batch_sizes.size() > 1 || batch_sizes.front() != first.size))
      throw Error(
          fmt::format("batcher: input {} has a fixed first dimension, expected one of any size, or batch_sizes = {{{}}}, got {{{}}}",
                      input.str(), first.size, fmt::join(batch_sizes, ", ")));
  }
}

}  // namespace tenon::serve
