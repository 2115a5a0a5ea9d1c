// SPDX-License-Identifier: Apache-2.0
// boundary.h - what the slots of tenon_backend_table share: structs that the host and the plugin know in different sizes.
#pragma once

#include <cstdint>
#include <cstring>

#include <tenon/backend.h>
#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// Copies as much of `value` as the receiver's struct_size covers, and sets struct_size to the bytes written.
template <class Struct>
void hand_over(Struct value, Struct* out) {
  const std::uint32_t capacity = out->struct_size;
  const auto size = static_cast<std::uint32_t>(capacity < sizeof value ? capacity : sizeof value);
  value.struct_size = size;
  std::memcpy(out, &value, size);
}

/// The fields that the sender's struct_size covers, the others 0; all 0 for NULL.
template <class Struct>
Struct sent(const Struct* given) {
  Struct options{};
  if (given != nullptr) std::memcpy(&options, given, given->struct_size < sizeof options ? given->struct_size : sizeof options);
  options.struct_size = sizeof options;
  return options;
}

// Each fills in the slots of its file.
void add_memory_slots(tenon_backend_table& table);
void add_stream_slots(tenon_backend_table& table, bool captures);
void add_plan_slots(tenon_backend_table& table, const KernelRow* rows);

}  // namespace tenon::sdk
