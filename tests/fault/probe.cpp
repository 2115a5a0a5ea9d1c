// SPDX-License-Identifier: Apache-2.0
// Plugins that crash, hang or end the process that loads them: a child process does it first, and its answer is kept.
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "probing.h"

TEST_CASE("probe: a plugin that crashes, exits or hangs is refused with its phase, and the others are loaded") {
  check_ending("crashes_in_create", Stage::self_check, "the plugin " + crash_text() + " in its `create`");
  // With code 0, which ThreadSanitizer replaces where a thread is still running.
  check_ending("exits_at_open", Stage::found, "the plugin exited the process (exit code ");
  check_ending("exits_at_exit", Stage::found, "the plugin exited the process (exit code 3) after shutdown");
  check_ending("hangs_in_query", Stage::found, "the plugin did not return within 0.3 s while loading the library", 0.3);
  const Loaded loaded({ending("exits_at_open"), file_of("healthy")}, probing(ProbeMode::always));
  REQUIRE(loaded.result.records.size() == 2);
  CHECK(loaded.result.records[1].healthy);
}

TEST_CASE("probe: what the plugin printed is part of its record") {
  const Loaded loaded({ending("crashes_in_create")}, probing(ProbeMode::always));
  CHECK(loaded.only().output == "vendor: no licence");
  CHECK(contains(describe(loaded.only()), "it printed: vendor: no licence"));
}

TEST_CASE("probe: a refusal in order is left to the loader, which knows its reason") {
  const Loaded loaded({file_of("create_fails")}, probing(ProbeMode::always));
  CHECK(was_probed(loaded));
  CHECK(contains(loaded.only().text, "vendorInit returned 999"));
}

TEST_CASE("probe: once keeps its answer for as long as the file has the same bytes") {
  const Scratch cache, folder;
  // One that is unmapped when it is destroyed: Windows keeps the file of a loaded library from being changed.
  const fs::path file = folder.path() / backend_file_name("unloadable");
  fs::copy_file(file_of("unloadable"), file);
  const Options once = probing(ProbeMode::once, cache.path() / "probes");
  CHECK(was_probed(Loaded({file}, once)));
  CHECK_FALSE(was_probed(Loaded({file}, once)));
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(24));
  CHECK_FALSE(was_probed(Loaded({file}, once)));  // another date, the same bytes
  std::ofstream(file, std::ios::binary | std::ios::app) << "more";
  CHECK(was_probed(Loaded({file}, once)));
  CHECK_FALSE(was_probed(Loaded({file}, once)));
  CHECK(was_probed(Loaded({file}, probing(ProbeMode::always, cache.path() / "probes"))));
  CHECK_FALSE(was_probed(Loaded({file}, probing(ProbeMode::never, cache.path() / "probes"))));
}

TEST_CASE("probe: a failure is remembered with its output, and forgotten after an hour") {
  const Scratch cache;
  const Options once = probing(ProbeMode::once, cache.path());
  CHECK(was_probed(Loaded({ending("crashes_in_create")}, once)));
  const Loaded again({ending("crashes_in_create")}, once);
  CHECK_FALSE(was_probed(again));
  CHECK(contains(again.only().text, "the plugin crashed"));
  CHECK(again.only().output == "vendor: no licence");

  const fs::path answer = fs::directory_iterator(cache.path())->path();
  std::string text = bytes_of(answer);
  const std::string now = std::to_string(std::time(nullptr)).substr(0, 6);
  const std::size_t at = text.find("\n" + now) + 1;
  text.replace(at, text.find('\n', at) - at, std::to_string(std::time(nullptr) - 3700));
  std::ofstream(answer, std::ios::binary) << text;
  CHECK(was_probed(Loaded({ending("crashes_in_create")}, once)));
}

TEST_CASE("probe: a damaged answer is no answer") {
  const Scratch cache;
  const Options once = probing(ProbeMode::once, cache.path());
  CHECK(was_probed(Loaded({file_of("healthy")}, once)));
  const fs::path answer = fs::directory_iterator(cache.path())->path();
  for (const std::string& text : {std::string(), bytes_of(answer).substr(0, 100)}) {
    std::ofstream(answer, std::ios::binary) << text;
    CHECK(was_probed(Loaded({file_of("healthy")}, once)));
  }
}

TEST_CASE("probe: without the helper, once loads with a warning and always refuses") {
  Options options = probing(ProbeMode::once);
  options.probe.helper = plugins / "tenon-probe";
  const Loaded once({file_of("healthy"), file_of("unloadable")}, options);
  CHECK(once.result.records[0].healthy);
  REQUIRE(once.result.warnings.size() == 1);
  CHECK(contains(once.result.warnings[0], "in a child process at " + tenon::platform::text_of(options.probe.helper) + ", got none"));
  CHECK(contains(once.result.warnings[0], "backends.probe: never"));
  options.probe.mode = ProbeMode::always;
  const Loaded always({file_of("healthy")}, options);
  CHECK_FALSE(always.only().healthy);
  CHECK(contains(always.only().text, "expected the program that loads it in a child process"));
}

TEST_CASE("probe: threads may probe at the same time") {
  const Scratch cache;
  std::atomic<int> healthy{0};
  const auto work = [&] { healthy += Loaded({file_of("healthy")}, probing(ProbeMode::once, cache.path())).only().healthy ? 1 : 0; };
  std::thread first(work), second(work);
  first.join();
  second.join();
  CHECK(healthy == 2);
}
