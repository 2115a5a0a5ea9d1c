// SPDX-License-Identifier: Apache-2.0
// serve/batcher_options.h - options of a batcher, checked.
#pragma once

#include <tenon/batcher.h>

namespace tenon::serve {

/// The options with batch_sizes filled in.
/// Errors  a value outside its range: its name, what was expected and what was given.
BatcherOptions checked(BatcherOptions options);

/// Checks that the inputs of an ONNX model have a batch axis that takes all sizes in `batch_sizes`.
/// Errors  the input, its type and what was expected.
void check_batch_axis(const onnx::Model& model, const std::vector<std::int64_t>& batch_sizes);

}  // namespace tenon::serve
