// SPDX-License-Identifier: Apache-2.0
// memory.h - device memory for a case, and the check of calls that must succeed.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "case.h"

namespace tenon::conformance {

inline void expect_ok(tenon_status status, const ErrorText& error, const char* what) {
  if (status != TENON_OK) throw Failure(fmt::format("{} failed with {}: {}", what, status_name(status), error.text()));
}

/// Calls a slot of a table, or a method that takes a tenon_error at the end, which must succeed.
template <class Slot, class... Arguments>
void expect_ok(const char* what, Slot slot, Arguments&&... arguments) {
  ErrorText error;
  expect_ok(std::invoke(slot, std::forward<Arguments>(arguments)..., static_cast<tenon_error*>(error)), error, what);
}
inline void synchronize(const CaseContext& context) {
  expect_ok("stream_synchronize", &Device::synchronize, context.device);
}

/// Device memory for a case.
class Memory {
 public:
  Memory(const CaseContext& context, std::uint64_t size, std::uint32_t kind = TENON_MEMORY_DEVICE) : Memory(context.device, size, kind) {}
  Memory(const Device& device, std::uint64_t size, std::uint32_t kind = TENON_MEMORY_DEVICE) : device_(device) {
    expect_ok("memory_allocate", device_.table().memory_allocate, device_.handle(), kind, size, &memory_, &address);
  }
  ~Memory() { device_.table().memory_free(memory_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::uint64_t address = 0;

 private:
  const Device& device_;
  tenon_memory* memory_ = nullptr;
};

}  // namespace tenon::conformance
