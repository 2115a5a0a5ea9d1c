// SPDX-License-Identifier: Apache-2.0
// platform/environment.h - changes of the environment of this process, for what it starts. Texts are UTF-8.
//
// Threads  nobody may read or change the environment meanwhile.
#pragma once

#include <string>

namespace tenon::platform {

/// On Windows a variable cannot be empty: it is removed.
void set_environment_variable(const std::string& name, const std::string& value);
void remove_environment_variable(const std::string& name);

}  // namespace tenon::platform
