// SPDX-License-Identifier: Apache-2.0
#include "platform/program.h"

#include <sys/resource.h>

namespace tenon::platform {

std::optional<std::uint64_t> stack_limit_bytes() {
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return stack.rlim_cur;
}

}  // namespace tenon::platform
