// SPDX-License-Identifier: Apache-2.0
#include "platform/environment.h"

#include <cstdlib>

#include "platform/windows/wide.h"

namespace tenon::platform {

void set_environment_variable(const std::string& name, const std::string& value) {
  _wputenv_s(windows::wide(name).c_str(), windows::wide(value).c_str());
}

void remove_environment_variable(const std::string& name) {
  _wputenv_s(windows::wide(name).c_str(), L"");
}

}  // namespace tenon::platform
