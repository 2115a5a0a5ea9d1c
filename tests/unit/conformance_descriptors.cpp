// SPDX-License-Identifier: Apache-2.0
// The kit's engine against backends that misuse what POSIX gives a process: descriptors, and processes of their own.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "disguised_backend.h"
#include "testing.h"

namespace tenon::test {
namespace {

enum class Misuse {
  closes_descriptors,
  leaves_a_process,  ///< starts a process that holds all descriptors, then ends
};
ChildSetting<Misuse> misuse("TENON_TEST_MISUSE", Misuse::closes_descriptors);

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "misusing";
  static tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                                   tenon_error* error) {
    if (misuse == Misuse::closes_descriptors) {
      for (int descriptor = 3; descriptor < 64; ++descriptor) close(descriptor);
    } else {
      if (fork() == 0) {
        pause();
        _exit(0);
      }
      std::raise(SIGKILL);
    }
    return real->plan_execute(plan, bindings, workspace, stream, error);
  }
  static void alter(tenon_backend_table& table) { table.plan_execute = plan_execute; }
};

conformance::Result judged(Misuse how) {
  misuse = how;
  return conformance::judge(Backend::options_of_children("ops", "relu/f32(7)/forward")).results.at(0);
}

TEST_CASE("conformance: a backend that closes the kit's descriptors fails without a hang") {
  CHECK(judged(Misuse::closes_descriptors).outcome == conformance::Class::fail);
}

TEST_CASE("conformance: a leftover process that holds the pipe is not waited for") {
  CHECK(contains(judged(Misuse::leaves_a_process).text, "signal 9"));
}

}  // namespace
}  // namespace tenon::test
