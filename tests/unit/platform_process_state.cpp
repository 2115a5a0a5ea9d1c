// SPDX-License-Identifier: Apache-2.0
// What the kit sees of a process, on every system: what it writes, its environment, its memory.
#include "platform/process_state.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "platform/environment.h"
#include "platform/machine.h"
#include "platform/output_capture.h"
#include "platform/system.h"

using namespace tenon;

TEST_CASE("platform: what is written to both standard streams is captured, and only meanwhile") {
  std::string text;
  {
    platform::OutputCapture capture;
    std::printf("one ");
    std::fflush(stdout);
    std::fprintf(stderr, "two");
    text = capture.end();
  }
  CHECK(text == "one two");
  platform::OutputCapture again;
  CHECK(again.end().empty());
}

TEST_CASE("platform: a variable that is set is read back, also by its description, and gone when it is removed") {
  const std::string name = "TENON_TEST_OF_ENVIRONMENT", what = "the environment variable " + name;
  platform::set_environment_variable(name, "\xC3\xBC \xE6\xBC\xA2");
  CHECK(platform::environment_variable(name) == "\xC3\xBC \xE6\xBC\xA2");
  CHECK(platform::environment_variables()[what] == "'\xC3\xBC \xE6\xBC\xA2'");
  platform::remove_environment_variable(name);
  CHECK_FALSE(platform::environment_variable(name).has_value());
  CHECK(platform::environment_variables().count(what) == 0);
}

TEST_CASE("platform: the memory of this process is known, and its threads") {
  const platform::ResidentMemory memory = platform::resident_memory();
  CHECK(memory.now_bytes > 100000);
  CHECK(memory.peak_bytes >= memory.now_bytes);
  CHECK(platform::threads().size() >= 1);
}
