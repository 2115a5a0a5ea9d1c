// SPDX-License-Identifier: Apache-2.0
// Named pipes, where a file is expected.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <tenon/error.h>

#include "io/gzip.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE_FIXTURE(InFolder, "gzip: a pipe is rejected") {
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_ERROR((pipe + ": expected a file, got a device or pipe").c_str(), io::read_maybe_gzip(pipe));
}
