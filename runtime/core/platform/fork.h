// SPDX-License-Identifier: Apache-2.0
// platform/fork.h - functions around fork(), where there is one.
#pragma once

namespace tenon::platform {

/// Calls these in each later fork(): before it, and after it in both processes. Null: nothing. On Windows they are never called.
void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace tenon::platform
