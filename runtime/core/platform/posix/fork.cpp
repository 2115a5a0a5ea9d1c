// SPDX-License-Identifier: Apache-2.0
#include "platform/fork.h"

#include <pthread.h>

namespace tenon::platform {

void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  static_cast<void>(::pthread_atfork(before, in_parent, in_child));
}

}  // namespace tenon::platform
