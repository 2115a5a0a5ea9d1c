// SPDX-License-Identifier: Apache-2.0
#include "platform/per_thread.h"

#include <windows.h>

#include <new>

namespace tenon::platform {
namespace {

/// While they are destroyed, when their slot may be empty already.
thread_local ThreadValues* in_destruction = nullptr;

void CALLBACK destroy(void* values) {
  in_destruction = static_cast<ThreadValues*>(values);
  delete in_destruction;
  in_destruction = nullptr;
}

/// A slot whose values Windows gives to destroy() when their threads end. This module stays loaded for that.
DWORD allocate_slot() {
  HMODULE pinned = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, reinterpret_cast<const wchar_t*>(&destroy),
                     &pinned);
  return FlsAlloc(destroy);
}

}  // namespace

ThreadValues& own_thread_values() {
  if (in_destruction != nullptr) return *in_destruction;
  static const DWORD slot = allocate_slot();
  if (slot == FLS_OUT_OF_INDEXES) throw std::bad_alloc();
  if (void* const values = FlsGetValue(slot)) return *static_cast<ThreadValues*>(values);
  auto* const values = new ThreadValues;
  FlsSetValue(slot, values);
  return *values;
}

bool own_thread_values_ended() {
  return false;
}

}  // namespace tenon::platform
