// SPDX-License-Identifier: Apache-2.0
// DLLs that crash in functions that Windows calls when it loads and unloads them: Windows catches these exceptions.
#include "probing.h"

TEST_CASE("probe: a DLL that crashes while it is loaded is refused by Windows") {
  const Loaded loaded({ending("crashes_at_open"), file_of("healthy")}, probing(ProbeMode::always));
  REQUIRE(loaded.result.records.size() == 2);
  CHECK(loaded.result.records[0].status == TENON_INCOMPATIBLE);
  CHECK(contains(loaded.result.records[0].text, "(error 998)"));  // ERROR_NOACCESS
  CHECK(loaded.result.records[1].healthy);
}

TEST_CASE("probe: a DLL that crashes when the process ends does no harm") {
  CHECK(Loaded({ending("crashes_at_exit")}, probing(ProbeMode::always)).only().healthy);
}
