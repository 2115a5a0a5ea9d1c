// SPDX-License-Identifier: Apache-2.0
// core/state_of.h - access to the state behind a public class.
#pragma once

#include <memory>
#include <string>

#include <tenon/error.h>

namespace tenon {

/// The state of an object of the API. Errors  the object was moved from and has none.
template <class State>
State& state_of(const std::unique_ptr<State>& state) {
  if (state == nullptr) throw Error(std::string(State::owner) + ": it was moved from; use the object that it was moved to");
  return *state;
}

}  // namespace tenon
