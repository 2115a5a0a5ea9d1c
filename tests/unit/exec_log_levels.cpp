// SPDX-License-Identifier: Apache-2.0
// Levels of the log that only a newer backend knows.
#include <doctest/doctest.h>

#include <string>

#include "core/log.h"
#include "log_file.h"

namespace tenon::test {

TEST_CASE("log: a level that this version does not know counts as an error") {
  const std::string text = logged([] {
    log::write(TENON_LOG_ERROR + 7, "of a newer backend");
    log::set_level(LogLevel::off);
    log::write(TENON_LOG_ERROR + 7, "while the log is off");
  });
  log::set_level(LogLevel::warning);
  CHECK(text == "tenon: error: of a newer backend\n");
}

}  // namespace tenon::test
