// SPDX-License-Identifier: Apache-2.0
// serve/batch.h - the tensors of a batch: joined from those of requests, and divided among them.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <tenon/batcher.h>

#include "serve/request.h"

namespace tenon::serve {

/// The samples of the requests.
std::int64_t count_samples(std::span<const Request> requests);

/// The smallest of the ascending `sizes` for that many samples, which is at most the last.
std::int64_t padded_size(std::int64_t samples, std::span<const std::int64_t> sizes);

/// The inputs of requests that can join, one after another along the first axis, and padding up to `size` rows. A single request of that
/// many samples gets its own tensors, if they are dense.
NamedTensors join(std::span<const Request> requests, std::int64_t size, BatchPadding padding);

/// An output without the batch as its first axis: an error of the model, not of one request.
class NoBatchAxis : public Error {
 public:
  using Error::Error;
};

/// Rows of the outputs for each request, copied to host memory; those of padding are dropped.
/// Errors  NoBatchAxis, with the name of the output.
std::vector<NamedTensors> split(const NamedTensors& outputs, std::span<const Request> requests, std::int64_t size);

}  // namespace tenon::serve
