// SPDX-License-Identifier: Apache-2.0
// c/model.h - models in the C API.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/callbacks.h>
#include <tenon/model.h>

#include "c/object.h"

struct TenonModel final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::model;
  explicit TenonModel(tenon::Model model) : Object(kind_of), value(std::make_shared<tenon::Model>(std::move(model))) {}
  std::shared_ptr<tenon::Model> value;                  ///< kept alive by objects for its parameters
  std::string compile_text;                             ///< what tenon_model_compile was given; empty: it was not called
  std::vector<tenon::CallbackDefinition> of_optimizer;  ///< what the optimizer's schedule needs in fit
};
