// SPDX-License-Identifier: Apache-2.0
// Backends that are registered in the process: contexts made during their scope find them before any file.
#include <thread>

#include "exec/registered.h"
#include "loader/find.h"
#include "platform/library.h"
#include "platform/path.h"
#include "testing.h"

namespace tenon::test {
namespace {

tenon_backend_query_fn reference_query() {
  std::string reason;
  void* const library = platform::open_library(platform::path_of(TENON_BACKEND_DIRECTORY) / loader::backend_file_name("reference"), reason);
  REQUIRE_MESSAGE(library != nullptr, reason);
  return reinterpret_cast<tenon_backend_query_fn>(platform::find_symbol(library, TENON_BACKEND_QUERY_SYMBOL));
}

/// The file of a context's reference backend; empty if it is registered.
std::string file_of_reference(const Context& context) {
  for (const LoadRecord& record : context.load_report().records) {
    if (record.name == "reference" && record.healthy) return record.path.string();
  }
  FAIL("there is no reference backend");
  return {};
}

TEST_CASE("registered: a registered backend precedes files, only in contexts of its scope and thread") {
  const Context before(test_config());
  CHECK_FALSE(file_of_reference(before).empty());
  {
    const exec::BackendScope scope("reference", reference_query());
    const Context inside(test_config());
    CHECK(file_of_reference(inside).empty());
    CHECK(inside.apply(TENON_OP_Neg, {Tensor::scalar(2.0f)})[0].to_host().item() == -2);
    bool is_file = false;
    std::thread([&] { is_file = !file_of_reference(Context(test_config())).empty(); }).join();
    CHECK(is_file);
  }
  CHECK_FALSE(file_of_reference(Context(test_config())).empty());
}

}  // namespace
}  // namespace tenon::test
