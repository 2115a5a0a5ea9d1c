// SPDX-License-Identifier: Apache-2.0
// Plugins that crash in functions that the dynamic linker calls.
#include "probing.h"

TEST_CASE("probe: a plugin that crashes while it is loaded, or when the process ends, is refused") {
  check_ending("crashes_at_open", Stage::found, "the plugin " + crash_text() + " while loading the library");
  check_ending("crashes_at_exit", Stage::found, "the plugin " + crash_text() + " after shutdown");
}
