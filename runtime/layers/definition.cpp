// SPDX-License-Identifier: Apache-2.0
#include "layers/definition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

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
namespace {

template <std::size_t... indices>
layers::Any moved_from(void* layer, std::size_t index, std::index_sequence<indices...>) {
  using Move = layers::Any (*)(void*);
  static constexpr std::array<Move, sizeof...(indices)> moves = {[](void* from) {
    return layers::Any(std::in_place_index<indices>, std::move(*static_cast<std::variant_alternative_t<indices, layers::Any>*>(from)));
  }...};
  return moves.at(index)(layer);
}

}  // namespace

LayerDefinition::LayerDefinition() = default;
LayerDefinition::LayerDefinition(const LayerDefinition&) = default;
LayerDefinition::LayerDefinition(LayerDefinition&&) noexcept = default;
LayerDefinition& LayerDefinition::operator=(const LayerDefinition&) = default;
LayerDefinition& LayerDefinition::operator=(LayerDefinition&&) noexcept = default;
LayerDefinition::~LayerDefinition() = default;

LayerDefinition::LayerDefinition(void* layer, std::size_t index, std::string layer_name, std::string layer_device)
    : kind(moved_from(layer, index, std::make_index_sequence<std::variant_size_v<layers::Any>>())),
      name(std::move(layer_name)),
      device(std::move(layer_device)) {}

const char* LayerDefinition::kind_name() const {
  return std::visit([]<class L>(const L&) { return layers::rule<L>().name; }, kind);
}

void LayerDefinition::fail(const std::string& reason) const {
  throw Error((where.empty() ? "layer " + (name.empty() ? std::string(kind_name()) : name) : where) + ": " + reason);
}

}  // namespace tenon
