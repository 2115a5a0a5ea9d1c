// SPDX-License-Identifier: Apache-2.0
// train/trainable.h - globs of parameter names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/builder.h"

namespace tenon::train {

/// True for parameters that any of the globs matches. Without globs, all parameters learn.
Learns learns_of(const std::vector<std::string>& globs);
/// Errors  a glob that matches none of the parameters; the text starts with `what` and lists them.
void check_glob(const std::string& what, const std::string& glob, std::span<const std::string> parameters);

}  // namespace tenon::train
