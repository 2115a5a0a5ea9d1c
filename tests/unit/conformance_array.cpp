// SPDX-License-Identifier: Apache-2.0
// Arrays of the conformance suite.
#include <doctest/doctest.h>

#include "conformance/array.h"

namespace kit = tenon::conformance;

TEST_CASE("array: bools are 0 or 1, as the ABI demands") {
  const kit::Array array(TENON_DTYPE_BOOL, {4}, {0, 1, 9, -2});
  CHECK(array.bytes()[0] == 0);
  for (int i = 1; i < 4; ++i) CHECK(array.bytes()[i] == 1);
}
