// SPDX-License-Identifier: Apache-2.0
#include "simd/amx_permission.h"

#include <windows.h>

namespace tenon::openblas {

bool request_amx_tiles() {
  // Windows 11 and Server 2022 have this function; its address is looked up, so that the plugin loads on those before.
  using Enable = BOOL(WINAPI*)(DWORD64 features);
  constexpr DWORD64 tile_data = DWORD64{1} << 18;  // XSTATE_MASK_AMX_TILE_DATA
  const HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
  if (kernel == nullptr) return false;
  const auto enable = reinterpret_cast<Enable>(reinterpret_cast<void*>(GetProcAddress(kernel, "EnableProcessOptionalXStateFeatures")));
  return enable != nullptr && enable(tile_data) != 0;
}

}  // namespace tenon::openblas
