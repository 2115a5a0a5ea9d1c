// SPDX-License-Identifier: Apache-2.0
// loader/load_error.h - why a candidate is not loaded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

/// Thrown by the steps of the loader, caught once per candidate. Both sentences are mandatory.
struct LoadError {
  LoadError(tenon_status why, std::string sentence, std::string advice, std::vector<MissingLibrary> without = {})
      : status(why), text(std::move(sentence)), remedy(std::move(advice)), missing(std::move(without)) {}

  tenon_status status;
  std::string text;    ///< what was expected and what was found
  std::string remedy;  ///< what to do about it
  std::vector<MissingLibrary> missing;
};

}  // namespace tenon::loader
