// SPDX-License-Identifier: Apache-2.0
#include "config/train_blocks.h"

namespace tenon::config {

std::optional<WeightsFile> read_weights(Section& top) {
  const auto value = top.find("weights", "the path of a file of weights, or a map with the key file", "null");
  if (!value || value->is_null()) return std::nullopt;
  WeightsFile weights;
  if (value->is_scalar()) {
    weights.file = value->as_path();
    return weights;
  }
  if (!value->is_map()) value->fail_expected("the path of a file of weights, or a map with the key file");
  Section section = value->section();
  weights.file = section.require_value("file", "the path of a file of weights").as_path();
  if (const auto map = section.find("map", "the path of a name map", "null"); map && !map->is_null()) weights.map = map->as_path();
  weights.transpose = section.get<bool>("transpose", weights.transpose);
  weights.strict = section.get<bool>("strict", weights.strict);
  section.finish();
  return weights;
}

}  // namespace tenon::config
