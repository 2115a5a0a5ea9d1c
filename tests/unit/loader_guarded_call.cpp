// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>

#include "loader/error_text.h"
#include "loader/guarded_call.h"

namespace tenon::loader {
namespace {

TEST_CASE("loader: an error's text is that of the backend, and ends in its memory even if the backend does not end it") {
  ErrorText error;
  CHECK(error.text().empty());
  CHECK(error.node_id() == 0);
  tenon_error* const abi = error;
  CHECK(abi->struct_size == sizeof(tenon_error));
  std::memset(abi->text, 'x', abi->text_capacity);
  CHECK(error.text() == std::string(abi->text_capacity, 'x'));
  CHECK(error.set(TENON_INTERNAL, std::string(5000, 'y')) == TENON_INTERNAL);
  CHECK(error.status() == TENON_INTERNAL);
  CHECK(error.text() == std::string(abi->text_capacity, 'y'));
}

TEST_CASE("loader: what a plugin throws becomes the failure of its call, with a message") {
  ErrorText error;
  CHECK(guarded_call("plan_execute", error, [] { return TENON_OUT_OF_MEMORY; }) == TENON_OUT_OF_MEMORY);
  CHECK(error.text().empty());
  CHECK(guarded_call("plan_execute", error, []() -> tenon_status { throw std::runtime_error("out of luck"); }) == TENON_INTERNAL);
  CHECK(error.text() == "plan_execute threw an exception: out of luck; no exception may leave a plugin: report this to its vendor");
  CHECK(guarded_call("supports", error, []() -> tenon_status { throw 1; }) == TENON_INTERNAL);
  CHECK(error.text() ==
        "supports threw something that is not a std::exception; no exception may leave a plugin: report this to its vendor");
}

}  // namespace
}  // namespace tenon::loader
