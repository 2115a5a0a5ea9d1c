// SPDX-License-Identifier: Apache-2.0
#include "train/program/trainable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tenon/error.h>

#include "yaml/glob.h"

namespace tenon::train {

Learns learns_of(const CompileOptions& options) {
  if (options.trainable.empty() && options.frozen.empty()) return {};
  return [trainable = options.trainable, frozen = options.frozen](const std::string& parameter) {
    const auto matches = [&](const std::string& glob) { return yaml::glob_matches(glob, parameter); };
    return (trainable.empty() || std::ranges::any_of(trainable, matches)) && std::ranges::none_of(frozen, matches);
  };
}

void check_glob(const std::string& what, const std::string& glob, std::span<const std::string> parameters) {
  if (std::any_of(parameters.begin(), parameters.end(), [&](const std::string& name) { return yaml::glob_matches(glob, name); })) return;
  throw Error(fmt::format("{}: matches no parameter of the model; expected a glob of {}", what, fmt::join(parameters, ", ")));
}

}  // namespace tenon::train
