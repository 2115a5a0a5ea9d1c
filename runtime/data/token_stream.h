// data/token_stream.h - samples cut from a stream of tokens.
#pragma once

#include <memory>
#include <string>

#include <tenon/data.h>

namespace tenon::data {

/// Views of i64(tokens): sample i is x = tokens [i s, i s + s), y = the same one later.
/// Errors  fewer than s + 1 tokens; the text starts with `name`.
std::shared_ptr<const ArrayDataset> token_samples(const std::string& name, const Tensor& tokens, std::int64_t sequence);

}  // namespace tenon::data
