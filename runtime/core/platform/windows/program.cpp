// SPDX-License-Identifier: Apache-2.0
#include "platform/program.h"

namespace tenon::platform {

std::optional<std::uint64_t> stack_limit_bytes() {
  return std::nullopt;  // the size is in the file of the program
}

}  // namespace tenon::platform
