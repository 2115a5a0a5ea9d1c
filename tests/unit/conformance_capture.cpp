// SPDX-License-Identifier: Apache-2.0
// The kit's capture cases: a backend that captures passes, one that breaks the rules fails, one without the block is skipped.
#include <doctest/doctest.h>

#include <string>

#include "conformance/conformance.h"
#include "disguised_backend.h"
#include "recording_backend.h"
#include "testing.h"

namespace tenon::test {
namespace {

using conformance::Class;
using recording::tape;

conformance::Report judged(const std::string& backend, const std::string& filter = "core/capture/*") {
  conformance::Options options;
  options.backend = backend;
  options.backend_directory = TENON_BACKEND_DIRECTORY;
  options.profile = "core";
  options.filter = filter;
  options.in_process = true;
  options.registered = {{"tape", recording::query}};
  return conformance::judge(options);
}

TEST_CASE("conformance: a backend that captures passes, with packed parameters") {
  tape = {};
  const auto report = judged("tape");
  for (const auto& result : report.results) CHECK_MESSAGE(result.outcome == Class::pass, result.name, ": ", result.text);
  CHECK(report.count(Class::pass) == 8);
  CHECK(tape.packs == 2);
  CHECK(tape.live == 0);
}

TEST_CASE("conformance: a backend that captures and shares packed parameters passes") {
  for (const char* name : {"core/pack/shared", "core/pack/constants", "core/pack/epochs", "core/pack/recorded", "core/pack/refused"}) {
    tape = {};
    const auto report = judged("tape", name);
    REQUIRE(report.results.size() == 1);
    CHECK_MESSAGE(report.results[0].outcome == Class::pass, name, ": ", report.results[0].text);
    CHECK(tape.live == 0);
  }
}

TEST_CASE("conformance: a capture that executes is caught") {
  tape = {};
  tape.runs_while_recording = true;
  const auto report = judged("tape");
  CHECK(result_named(report, "core/capture/replays_compute")
            .text.find("after a recording, which executes nothing: element 0 is 1, expected 9") == 0);
  CHECK(result_named(report, "core/capture/copies_in_order").outcome == Class::fail);
}

TEST_CASE("conformance: replays whose kernels are not measured are caught") {
  tape = {};
  tape.forgets_times = true;
  CHECK(result_named(judged("tape"), "core/capture/replays_are_profiled").text.find("a replayed relu of 65536 elements took 0 ns") == 0);
}

TEST_CASE("conformance: a capture that cannot be ended is a failure") {
  tape = {};
  tape.fail_end = true;
  CHECK(result_named(judged("tape"), "core/capture/replays_compute").text.find("capture end failed with VENDOR_ERROR: the tape has torn") ==
        0);
}

TEST_CASE("conformance: a backend without the capture block is skipped without a failure") {
  const auto report = judged("openblas");
  CHECK(report.count(Class::unsupported) == 8);
  CHECK(report.exit_code() == 0);
  CHECK(contains(result_named(report, "core/capture/parameters").text, "capture is NULL"));
}

}  // namespace
}  // namespace tenon::test
