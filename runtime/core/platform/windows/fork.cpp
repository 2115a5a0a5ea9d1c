// SPDX-License-Identifier: Apache-2.0
#include "platform/fork.h"

namespace tenon::platform {

void on_fork(void (*)(), void (*)(), void (*)()) {}

}  // namespace tenon::platform
