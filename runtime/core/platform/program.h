// SPDX-License-Identifier: Apache-2.0
// platform/program.h - the limits that the system sets for a program.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon::platform {

/// The limit of the stack of this process and of threads that it starts, if there is one that the user can change.
std::optional<std::uint64_t> stack_limit_bytes();

}  // namespace tenon::platform
