// SPDX-License-Identifier: Apache-2.0
// onnx/importer_scope.h - what the files of the importer share: the values by name, and what ends a rule early.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "onnx/importer.h"
#include "onnx/operand.h"

namespace tenon::onnx {

/// Inputs that may be specialised.
constexpr std::int64_t max_specialised_elements = 64;

/// Ends a rule whose subgraph has a node that cannot be imported.
struct Failed {};

/// Ends the rule of a node whose bodies cannot be a part of the graph, because of computed elements.
struct BodiesNeeded {
  std::string problem;
};

/// Sets a variable until the end of a block.
template <class T>
class Restore {
 public:
  Restore(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Restore() { variable_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T before_;
};

/// The values of a graph by name.
struct Importer::Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string_view, Operand> values = {};

  const Operand* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      if (const auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
    }
    return nullptr;
  }
};

}  // namespace tenon::onnx
