// SPDX-License-Identifier: Apache-2.0
// config_testing.h - texts of train.yaml, as tests of its keys and of its errors read them.
#pragma once

#include <string>
#include <vector>

#include "config/model_yaml.h"
#include "testing.h"

namespace tenon::test {

/// What every train.yaml of these tests begins with.
inline const std::string train_head = "model: {layers: [softmax]}\ndata: {source: digits}\nloss: sparse_categorical_crossentropy\n";

inline TrainDefinition train_of(const std::string& more, const std::vector<ConfigOverride>& overrides = {}) {
  return config::train_from_text(train_head + more, "train.yaml", "/base", overrides);
}
/// The given text starts at line 4.
inline std::string train_error(const std::string& more, const std::vector<ConfigOverride>& overrides = {}) {
  return message_of([&] { train_of(more, overrides); });
}

}  // namespace tenon::test
