// SPDX-License-Identifier: Apache-2.0
// The program of these tests is also that of the kit's child processes.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "conformance/child_program.h"
#include "disguised_backend.h"

int main(int argc, char** argv) {
  using namespace tenon;
  doctest::Context context(argc, argv);
  context.setAsDefaultForAssertsOutOfTestCases();  // backends check what they need, in children too
  if (const auto code = conformance::run_as_child(argc, argv, {test::backends_of_children(), test::cases_of_children})) return *code;
  return context.run();
}
