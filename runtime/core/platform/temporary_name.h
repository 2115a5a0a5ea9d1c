// SPDX-License-Identifier: Apache-2.0
// platform/temporary_name.h - names for files that are to be renamed.
#pragma once

#include <string>

namespace tenon::platform {

/// `.<name>.<digits>.tmp` with 16 random hexadecimal digits.
std::string temporary_name(const std::string& name);

/// Removes the files of a folder that have such a name and were written more than an hour ago, by a process that was killed. On Windows
/// those that are in use stay.
void remove_old_temporaries(const std::string& folder, const std::string& name);

}  // namespace tenon::platform
