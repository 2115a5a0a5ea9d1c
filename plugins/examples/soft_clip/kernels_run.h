// SPDX-License-Identifier: Apache-2.0
// kernels_run.h - how many kernels this library has run.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::example {

/// Threads  any.
std::atomic<std::uint64_t>& kernels_run();

}  // namespace tenon::example
