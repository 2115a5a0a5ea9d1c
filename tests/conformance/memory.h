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

/// Memory as memory_allocate or memory_import made it.
struct Made : tenon_memory_result {
  Made() : tenon_memory_result{.struct_size = sizeof(tenon_memory_result)} {}
  bool is_written() const { return memory != nullptr || address != 0 || host != nullptr; }
};

/// Calls memory_allocate.
inline tenon_status allocate(const tenon_backend_table& table, tenon_device* device, std::uint32_t kind, std::uint64_t size, Made& out_made,
                             tenon_error* error) {
  const tenon_memory_request request{.struct_size = sizeof request, .kind = kind, .size_bytes = size};
  return table.memory_allocate(device, &request, &out_made, error);
}

/// Calls memory_import.
inline tenon_status import(const tenon_backend_table& table, tenon_device* device, void* host, std::uint64_t size, std::uint32_t terms,
                           Made& out_made, tenon_error* error) {
  const tenon_memory_import given{.struct_size = sizeof given, .terms = terms, .host = host, .size_bytes = size};
  return table.memory_import(device, &given, &out_made, error);
}

/// Device memory for a case.
class Memory {
 public:
  Memory(const CaseContext& context, std::uint64_t size, std::uint32_t kind = TENON_MEMORY_DEVICE) : Memory(context.device, size, kind) {}
  Memory(const Device& device, std::uint64_t size, std::uint32_t kind = TENON_MEMORY_DEVICE) : device_(device) {
    expect_ok("memory_allocate", allocate, device_.table(), device_.handle(), kind, size, made_);
    address = made_.address;
  }
  /// Waits for the device's stream: after a failure, work may still be pending.
  ~Memory() {
    ErrorText ignored;
    static_cast<void>(device_.synchronize(ignored));
    device_.table().memory_free(made_.memory);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::uint64_t address = 0;

 private:
  const Device& device_;
  Made made_;
};

}  // namespace tenon::conformance
