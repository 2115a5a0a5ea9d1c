// SPDX-License-Identifier: Apache-2.0
// layers/rule.h - what there is to know of a kind of layer beyond its fields.
#pragma once

#include <cstdint>

#include <tenon/layers.h>

#include "layers/builder.h"
#include "layers/keys.h"

namespace tenon::layers {

template <class L>
struct Rule {
  const char* type;  ///< in summaries
  const char* name;  ///< in YAML
  /// Reads the keys except `name` and `device`; null: there are none.
  void (*read)(LayerKeys& keys, L& out_layer);
  /// Appends the layer to the graph. Errors  x does not fit (LayerBuilder::fail).
  Value (*build)(LayerBuilder& builder, const L& layer, Value x);
  /// The features or channels of the result, which a reduced model has fewer of; null: the layer does not choose them.
  std::int64_t L::*width = nullptr;
  /// Whether the result at a step depends on x at that and earlier steps alone, of which a Decoding keeps what later steps need; null: it
  /// never does.
  bool (*causal)(const L& layer) = nullptr;
};

/// For Rule::causal of a layer that computes each step from that step.
template <class L>
bool step_by_step(const L&) {
  return true;
}

/// The file of a layer's family defines this for each kind: a kind without a rule does not link.
template <class L>
Rule<L> rule();

/// TENON_LAYER(type, name, read, build) defines the rule of the struct `type`; the other fields of Rule may follow.
#define TENON_LAYER(L, ...)   \
  template <>                 \
  Rule<L> rule<L>() {         \
    return {#L, __VA_ARGS__}; \
  }

}  // namespace tenon::layers
