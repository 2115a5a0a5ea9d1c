// SPDX-License-Identifier: Apache-2.0
// loader/backend.h - the state of a Backend.
#pragma once

#include <memory>
#include <vector>

#include "loader/complete.h"
#include "loader/loader.h"
#include "loader/open.h"

namespace tenon::loader {

/// Filled step by step while a candidate is validated. The library is declared first, so that it is destroyed last.
struct Backend::Parts {
  std::unique_ptr<Library> library;  ///< NULL for a backend registered in the process
  Record record;
  Answer answer;
  std::uint32_t abi_minor = 0;
  std::vector<SwitchedOff> switched_off;
  tenon_backend* handle = nullptr;
  Table table;
  std::vector<tenon_device_info> devices;
};

}  // namespace tenon::loader
