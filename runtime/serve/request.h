// SPDX-License-Identifier: Apache-2.0
// serve/request.h - a request as a batcher holds it.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <stop_token>
#include <string>

#include <tenon/safetensors.h>

namespace tenon::serve {

using Clock = std::chrono::steady_clock;

struct Request {
  NamedTensors inputs;
  std::int64_t samples = 0;  ///< size of the first axis of each input
  Clock::time_point arrival = {};
  Clock::time_point deadline = Clock::time_point::max();
  std::stop_token stop = {};
  std::promise<NamedTensors> result = {};
};

/// The number of samples of inputs.
/// Errors  those of Batcher::submit about its inputs.
std::int64_t count_samples(const NamedTensors& inputs, std::int64_t max_batch);

/// Whether requests with these inputs may share a batch: equal names, dtypes and shapes beyond the first axis.
bool can_join(const NamedTensors& a, const NamedTensors& b);

}  // namespace tenon::serve
