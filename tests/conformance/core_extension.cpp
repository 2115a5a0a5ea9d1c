// SPDX-License-Identifier: Apache-2.0
// Extensions of the backend, which applications ask for by name and version.
#include "core.h"

namespace tenon::conformance {
namespace {

/// A name that nobody uses, and the empty one, are NULL: each time, on each thread.
void unknown(CaseContext& context) {
  const auto extension = context.device.table().extension;
  if (extension == nullptr) throw NotRun("not offered: tenon_backend_table.extension is NULL");
  const Another another(context);
  on_threads(2, [&](int) {
    for (const char* const name : {"com.example.no_such_extension", "", "com.example.no_such_extension"}) {
      for (const std::uint32_t version : {0u, 1u, 4711u}) {
        const void* const found = extension(another.backend, name, version);
        if (found != nullptr) fail(fmt::format("extension '{}' of version {}: expected NULL, got a pointer", name, version));
      }
    }
  });
}

}  // namespace

std::vector<Case> core_extension_cases() {
  return core_cases({
      {"extension/unknown", unknown},
  });
}

}  // namespace tenon::conformance
