// SPDX-License-Identifier: Apache-2.0
#include "platform/wait.h"

#include <windows.h>

namespace tenon::platform {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);

void wait(const std::atomic<std::uint32_t>& atomic, std::uint32_t value) noexcept {
  if (atomic.load(std::memory_order_acquire) != value) return;
  WaitOnAddress(const_cast<std::atomic<std::uint32_t>*>(&atomic), &value, sizeof value, INFINITE);  // it only reads
}

void wake_one(std::atomic<std::uint32_t>& atomic) noexcept {
  WakeByAddressSingle(&atomic);
}

void wake_all(std::atomic<std::uint32_t>& atomic) noexcept {
  WakeByAddressAll(&atomic);
}

}  // namespace tenon::platform
