// SPDX-License-Identifier: Apache-2.0
#include "platform/wait.h"

namespace tenon::platform {

void wait(const std::atomic<std::uint32_t>& atomic, std::uint32_t value) noexcept {
  atomic.wait(value, std::memory_order_acquire);
}

void wake_one(std::atomic<std::uint32_t>& atomic) noexcept {
  atomic.notify_one();
}

void wake_all(std::atomic<std::uint32_t>& atomic) noexcept {
  atomic.notify_all();
}

}  // namespace tenon::platform
