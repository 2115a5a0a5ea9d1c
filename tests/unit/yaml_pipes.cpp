// SPDX-License-Identifier: Apache-2.0
// A named pipe, where a YAML file is expected.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "temporary_folder.h"
#include "yaml/reader.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE_FIXTURE(InFolder, "yaml: a pipe is rejected, and not waited for") {
  const std::string pipe = folder.file("pipe.yaml");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_ERROR(pipe + ": expected a file, got a device or pipe", yaml::load(pipe));
}
