// SPDX-License-Identifier: Apache-2.0
// cli/joined_kernels.h - which kernels have no launch of their own.
#pragma once

#include <string_view>

namespace tenon::cli {

/// Whether a kernel ran in the launch of the one before on its device: it has no time of its own, and its work belongs to that one's time.
inline bool is_joined(std::string_view algorithm, double ns) {
  return ns == 0 && algorithm.find(" (joined)") != std::string_view::npos;
}

}  // namespace tenon::cli
