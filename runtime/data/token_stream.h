// SPDX-License-Identifier: Apache-2.0
// data/token_stream.h - samples from a stream of tokens.
#pragma once

#include <memory>
#include <string>

#include <tenon/data.h>

namespace tenon::data {

/// Views of i64(tokens): for a sequence length s, sample i is x = tokens [i s, i s + s) and y = tokens [i s + 1, i s + s + 1).
/// Errors  fewer than s + 1 tokens; the text starts with `name`.
std::shared_ptr<const ArrayDataset> token_samples(const std::string& name, const Tensor& tokens, std::int64_t sequence);

}  // namespace tenon::data
