// SPDX-License-Identifier: Apache-2.0
// c/program.h - programs and parameters in the C API.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/graph.h>
#include <tenon/program.h>

#include "c/object.h"

struct TenonParameters final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::parameters;
  explicit TenonParameters(std::shared_ptr<tenon::ParameterStore> store) : Object(kind_of), value(std::move(store)) {}
  std::shared_ptr<tenon::ParameterStore> value;
};

struct TenonProgram final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::program;
  /// `graph`: the one that the program is of, for the names and types of its inputs and outputs.
  TenonProgram(tenon::Program program, const tenon::Graph& graph);

  /// An input or output.
  struct Port {
    std::string name;
    tenon::DType dtype;
    tenon::Shape shape;
  };
  tenon::Program value;
  std::vector<Port> inputs, outputs;
  // What tenon_program_run_bound uses; undefined: not bound.
  std::vector<tenon::Tensor> bound_inputs, bound_outputs;
};
