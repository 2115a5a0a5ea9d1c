// SPDX-License-Identifier: Apache-2.0
// memory.h - device memory for a case, and the check of calls that must succeed.
#pragma once

#include <fmt/format.h>

#include "case.h"

namespace tenon::conformance {

inline void expect_ok(tenon_status status, const ErrorText& error, const char* what) {
  if (status != TENON_OK) throw Failure(fmt::format("{} failed with {}: {}", what, status_name(status), error.text()));
}

/// Device memory for a case.
class Memory {
 public:
  Memory(const CaseContext& context, std::uint64_t size, std::uint32_t kind = TENON_MEMORY_DEVICE) : device_(context.device) {
    ErrorText error;
    expect_ok(device_.table().memory_allocate(device_.handle(), kind, size, &memory_, &address, error), error, "memory_allocate");
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
