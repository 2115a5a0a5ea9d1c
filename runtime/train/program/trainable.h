// SPDX-License-Identifier: Apache-2.0
// train/program/trainable.h - globs of parameter names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tenon/model.h>

#include "train/program/builder.h"

namespace tenon::train {

/// True for parameters that a glob of `trainable` matches, or all if there is none, and no glob of `frozen`.
Learns learns_of(const CompileOptions& options);
/// Errors  a glob that matches none of the parameters; the text starts with `what` and lists them.
void check_glob(const std::string& what, const std::string& glob, std::span<const std::string> parameters);

}  // namespace tenon::train
