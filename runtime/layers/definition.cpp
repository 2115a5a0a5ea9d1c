// SPDX-License-Identifier: Apache-2.0
#include "layers/definition.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <tenon/error.h>

#include "layers/rule.h"

namespace tenon::layers {

bool starts_with_embedding(const ModelDefinition& definition) {
  const auto first =
      std::ranges::find_if_not(definition.layers, [](const LayerDefinition& layer) { return std::holds_alternative<Flatten>(layer.kind); });
  return first != definition.layers.end() && std::holds_alternative<Embedding>(first->kind);
}

bool takes_any_dtype(const ModelDefinition& definition) {
  return starts_with_embedding(definition) || std::holds_alternative<Onnx>(definition.layers.at(0).kind);
}

bool is_one_file(const ModelDefinition& definition) {
  return definition.layers.size() == 1 && std::holds_alternative<Onnx>(definition.layers[0].kind);
}

DType input_dtype(const ModelDefinition& definition) {
  return starts_with_embedding(definition) && is_floating(definition.input_dtype) ? DType::i64 : definition.input_dtype;
}

void scale_width(ModelDefinition& definition, double factor) {
  const LayerDefinition* const last = definition.layers.size() > 1 ? &definition.layers.back() : nullptr;
  for_each_layer(definition.layers, [&](LayerDefinition& layer) {
    if (&layer == last) return;
    std::visit(
        [&]<class L>(L& kind) {
          std::int64_t L::*const width = rule<L>().width;
          if (width != nullptr) kind.*width = std::max<std::int64_t>(1, std::llround(static_cast<double>(kind.*width) * factor));
        },
        layer.kind);
  });
}

}  // namespace tenon::layers

namespace tenon {

const char* LayerDefinition::kind_name() const {
  return std::visit([]<class L>(const L&) { return layers::rule<L>().name; }, kind);
}

void LayerDefinition::fail(const std::string& reason) const {
  throw Error((where.empty() ? "layer " + (name.empty() ? std::string(kind_name()) : name) : where) + ": " + reason);
}

}  // namespace tenon
