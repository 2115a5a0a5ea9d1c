// SPDX-License-Identifier: Apache-2.0
// platform/wait.h - sleeping until an atomic changes. std::atomic::wait of libstdc++ loses wake-ups where the system has no futex.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::platform {

/// Sleeps while the atomic has this value. It may return earlier: the caller reads the atomic again.
void wait(const std::atomic<std::uint32_t>& atomic, std::uint32_t value) noexcept;

/// Wakes one thread that waits on the atomic, or all. To be called after the change.
void wake_one(std::atomic<std::uint32_t>& atomic) noexcept;
void wake_all(std::atomic<std::uint32_t>& atomic) noexcept;

}  // namespace tenon::platform
