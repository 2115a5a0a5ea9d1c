// SPDX-License-Identifier: Apache-2.0
// c/graph.h - graphs and nodes in the C API.
#pragma once

#include <memory>
#include <string>

#include <tenon/attributes.h>
#include <tenon/graph.h>

#include "c/object.h"

struct TenonGraph final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::graph;
  explicit TenonGraph(tenon::Graph graph = {}) : Object(kind_of), value(std::move(graph)) {}
  tenon::Graph value;
};

namespace tenon::c {

/// An op with its attributes and options, as one of the two forms of a call gives them.
struct Node {
  tenon_op op = TENON_OP_NONE;
  Attributes attributes;
  NodeOptions options;
};
/// By number, with the struct that its line in ops.def names; null: an op without attributes, or whose attributes all have defaults.
Node node_of(tenon_op op, const void* attributes, const TenonNodeOptions* options);
/// By name, with JSON.
Node node_of(const char* op, const char* attributes);

}  // namespace tenon::c
