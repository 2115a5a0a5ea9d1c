// SPDX-License-Identifier: Apache-2.0
// Process hygiene: a backend changes no process state from its loading to its end, and leaves no threads or descriptors open.

#include <chrono>
#include <functional>
#include <thread>

#include "core.h"
#include "platform/output_capture.h"
#include "process.h"

namespace tenon::conformance {
namespace {

/// Creates, uses and destroys a second instance, and calls `check` after each stage.
void run_second_instance(const CaseContext& context, const std::function<void(const char* stage)>& check) {
  auto device = std::make_unique<Device>(SecondInstance{context.device});
  check("create and device_open");
  expect_sane(CaseContext(*device, nullptr, context.seed));
  check("copies and an execution");
  device.reset();
  check("shutdown and destroy");
}

void require_told(const char* name, const Reading& reading) {
  if (reading.empty()) throw NotRun(fmt::format("this system does not tell the {} of a process", name));
}

/// Checks that the facet does not change at any stage, including the loading of the library and its first `create`.
void expect_untouched(const CaseContext& context, const char* name) {
  const Reading& before = context.device.before_loading().at(name);
  require_told(name, before);
  const auto check = [&](const char* stage) {
    const std::string change = change_between(before, process_facet(name).read());
    if (!change.empty()) fail(fmt::format("after {}: {}", stage, change));
  };
  check("loading, create, device_open and the cases before this one");
  run_second_instance(context, check);
}

void floating_point(CaseContext& context) {
  expect_untouched(context, "floating_point");
}
void signals(CaseContext& context) {
  expect_untouched(context, "signals");
}
void locale(CaseContext& context) {
  expect_untouched(context, "locale");
}
void environment(CaseContext& context) {
  expect_untouched(context, "environment");
}
void affinity(CaseContext& context) {
  expect_untouched(context, "affinity");
}
void files(CaseContext& context) {
  expect_untouched(context, "files");
}
void limits(CaseContext& context) {
  expect_untouched(context, "limits");
}

/// Checks that a second instance leaves no new entries. Threads that are ending get time to end.
void expect_nothing_left(const CaseContext& context, const char* name) {
  using namespace std::chrono_literals;
  run_second_instance(context, [](const char*) {});
  const Facet& facet = process_facet(name);
  const Reading before = facet.read();
  require_told(name, before);
  run_second_instance(context, [](const char*) {});
  std::string left;
  for (int patience = 0; patience < 40; ++patience) {
    left.clear();
    for (const auto& [what, value] : facet.read()) {
      if (before.count(what) == 0) left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", what, value);
    }
    if (left.empty()) return;
    std::this_thread::sleep_for(50ms);
  }
  fail("left after shutdown and destroy: " + left);
}

void threads(CaseContext& context) {
  expect_nothing_left(context, "threads");
}
void descriptors(CaseContext& context) {
  expect_nothing_left(context, "descriptors");
}

/// Standard output and error belong to the host: a backend reports through the host's log and tenon_error.
void output(CaseContext& context) {
  platform::OutputCapture capture;
  run_second_instance(context, [](const char*) {});
  const std::string captured = capture.end();
  if (!captured.empty()) fail(fmt::format("the backend wrote to standard output or error: \"{}\"", captured));
}

}  // namespace

std::vector<Case> core_process_cases() {
  return core_cases({
      {"process/floating_point", floating_point},
      {"process/signals", signals},
      {"process/locale", locale},
      {"process/environment", environment},
      {"process/affinity", affinity},
      {"process/files", files},
      {"process/limits", limits},
      {"process/threads", threads},
      {"process/descriptors", descriptors},
      {"process/output", output},
  });
}

}  // namespace tenon::conformance
