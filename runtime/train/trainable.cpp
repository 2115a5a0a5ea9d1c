// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tenon/error.h>

#include "exec/placement.h"

namespace tenon::train {

Learns learns_of(const std::vector<std::string>& globs) {
  if (globs.empty()) return {};
  return [globs](const std::string& parameter) {
    return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return exec::glob_matches(glob, parameter); });
  };
}

void check_glob(const std::string& what, const std::string& glob, std::span<const std::string> parameters) {
  if (std::any_of(parameters.begin(), parameters.end(), [&](const std::string& name) { return exec::glob_matches(glob, name); })) return;
  throw Error(fmt::format("{}: matches no parameter of the model; expected a glob of {}", what, fmt::join(parameters, ", ")));
}

}  // namespace tenon::train
