// SPDX-License-Identifier: Apache-2.0
// yaml/glob.h - globs of names, as files have them for nodes and parameters.
#pragma once

#include <string>

namespace tenon::yaml {

/// True if `text` matches the glob: `*` any run of characters, `?` one.
bool glob_matches(const std::string& glob, const std::string& text);

}  // namespace tenon::yaml
