// SPDX-License-Identifier: Apache-2.0
// platform/temporary_name.h - names for files that are to be renamed.
#pragma once

#include <string>

namespace tenon::platform {

/// `.<name>.<digits>.tmp` with 16 random hexadecimal digits.
std::string temporary_name(const std::string& name);

}  // namespace tenon::platform
