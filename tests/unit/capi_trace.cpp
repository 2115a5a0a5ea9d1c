// SPDX-License-Identifier: Apache-2.0
// The C API: traces. exec_trace.cpp tests what is recorded.
#include "capi_testing.h"

#include <algorithm>
#include <fstream>

#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

TEST_CASE("C API: a trace has the kernels that ran and the spans of the caller, until it stops") {
  const NoLeaks none;
  const TemporaryFolder folder;
  const Owned<TenonContext> context = make_context("openblas:0");
  const Owned<TenonTensor> x = make_tensor({1, 2, 3, 4}, {2, 2});
  const TenonTensor* inputs[] = {x};
  const auto run = [&] {
    Owned<TenonTensor> y;
    REQUIRE_OK(tenon_apply_named(context, nullptr, "Exp", nullptr, inputs, 1, y.out(), 1, nullptr));
  };
  char* text = nullptr;
  REQUIRE_OK(tenon_trace_begin_span(context, "not recorded"));  // no trace records
  REQUIRE_OK(tenon_trace_end_span(context));
  Owned<TenonTrace> trace;
  REQUIRE_OK(tenon_trace_start(context, trace.out()));
  TenonTrace* second = nullptr;
  CHECK_FAILS_WITH("traced", tenon_trace_start(context, &second));
  REQUIRE_OK(tenon_trace_begin_span(context, "mine"));
  run();
  run();
  REQUIRE_OK(tenon_trace_end_span(context));
  REQUIRE_OK(tenon_trace_stop(trace));
  run();

  REQUIRE_OK(tenon_trace_report(trace, &text));
  const json report = parsed(text);
  REQUIRE(report["kernels"].size() == 1);
  CHECK(report["kernels"][0]["op"] == "Exp");
  CHECK(report["kernels"][0]["device"] == "openblas:0");
  CHECK(report["kernels"][0]["runs"] == 2);
  CHECK(report["dropped"] == 0);
  REQUIRE_OK(tenon_trace_json(trace, &text));
  const json events = parsed(text)["traceEvents"];
  CHECK(std::ranges::count_if(events, [](const json& event) { return event["name"] == "mine"; }) == 1);
  CHECK(std::ranges::count_if(events, [](const json& event) { return event["name"] == "not recorded"; }) == 0);
  const std::string file = folder.file("trace.json");
  REQUIRE_OK(tenon_trace_write(trace, file.c_str()));
  std::ifstream written(file);
  CHECK(json::parse(written)["traceEvents"] == events);
  CHECK_FAILS_WITH("/nowhere/trace.json", tenon_trace_write(trace, "/nowhere/trace.json"));
  CHECK_FAILS_WITH("name: expected an address, got NULL", tenon_trace_begin_span(context, nullptr));
}
