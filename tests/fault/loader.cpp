// SPDX-License-Identifier: Apache-2.0
// The loader's messages about plugins that are wrong, fail or are missing; none of them harms a healthy one.
#include "loader/loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "loading.h"
#include "platform/library.h"

namespace {

bool is_loaded(const fs::path& file) {
  const std::vector<fs::path> modules = tenon::platform::loaded_modules();
  return std::any_of(modules.begin(), modules.end(), [&](const fs::path& module) { return fs::equivalent(module, file); });
}

}  // namespace

TEST_CASE("loader: a healthy plugin reaches its devices") {
  const Loaded loaded({file_of("healthy")});
  const Record& record = loaded.only();
  CHECK(record.healthy);
  CHECK(record.text.empty());
  CHECK(record.reached == Stage::devices);
  CHECK(record.status == TENON_OK);
  CHECK(record.origin == "command line");
  CHECK(record.version == "0.1.0");
  CHECK(record.abi_major == TENON_ABI_MAJOR);
  CHECK(record.abi_minor == TENON_ABI_MINOR);
  CHECK(contains(record.build_id, "template 0.1.0"));
  REQUIRE(record.devices.size() == 1);
  CHECK(record.devices[0].name == "healthy:0");
  CHECK(record.devices[0].identity == "host");
  REQUIRE(loaded.result.backends.size() == 1);
  const Backend& backend = *loaded.result.backends[0];
  CHECK(backend.name() == "healthy");
  CHECK(backend.devices().size() == 1);
  CHECK(backend.table().struct_size == sizeof(tenon_backend_table));
  CHECK(backend.table().blas == nullptr);
  CHECK(backend.record().healthy);
  CHECK(contains(describe(record), "healthy, version 0.1.0, 1 device"));
}

TEST_CASE("loader: destroying a backend gives back everything and keeps the library mapped") {
  Loaded loaded({file_of("healthy")});
  CHECK(loaded.host.live_bytes > 0);
  loaded.result.backends.clear();
  CHECK(loaded.host.live_bytes == 0);
  CHECK(is_loaded(file_of("healthy")));
}

TEST_CASE("loader: a backend that declares itself unloadable is unmapped with its last owner") {
  Loaded loaded({file_of("unloadable")});
  CHECK(loaded.only().healthy);
  CHECK((loaded.only().flags & TENON_BACKEND_UNLOADABLE) != 0);
  loaded.result.backends.clear();
  CHECK(loaded.host.live_bytes == 0);
  CHECK_FALSE(is_loaded(file_of("unloadable")));
}

TEST_CASE("loader: a file that does not exist is reported as such") {
  check_failure("no_such_plugin", Stage::named, TENON_INVALID_ARGUMENT, "there is no such file", "correct the path");
}

TEST_CASE("loader: a text file is not a library") {
  write_plugin("text", "backends:\n  use: [cuda]\n");
  check_failure("text", Stage::found, TENON_INVALID_ARGUMENT, "the file is not a library", put_own_build());
}

TEST_CASE("loader: an empty file is reported as such") {
  write_plugin("empty", "");
  check_failure("empty", Stage::found, TENON_INVALID_ARGUMENT, "the file is empty", "copy or build it again");
}

TEST_CASE("loader: a folder with a library's name is not a candidate of its parent") {
  fs::create_directories(file_of("folder"));
  const Loaded parent({plugins / "folder"});
  CHECK(parent.result.records.empty());
  REQUIRE(parent.result.places.size() == 1);
  CHECK(contains(parent.result.places[0].text, "no file named " + backend_file_name("<name>")));
}

TEST_CASE("loader: a library without the symbol is not a backend") {
  check_failure("missing_symbol", Stage::opened, TENON_INCOMPATIBLE, "it does not export tenon_backend_query", "TENON_EXPORT");
}

TEST_CASE("loader: incompatible versions are reported with both ranges, both builds and what to install") {
  check_failure("wrong_major", Stage::symbol, TENON_INCOMPATIBLE, "the core supports ABI 1.0 (build 'tenon ",
                "install a Tenon that supports ABI 8.0");
  check_failure("wrong_major", Stage::symbol, TENON_INCOMPATIBLE, "the plugin ABI 8.0 (build 'template 0.1.0 ", "made for ABI 1.0");
  check_failure("too_new", Stage::symbol, TENON_INCOMPATIBLE, "the plugin ABI 1.1 to 1.3", "install a Tenon that supports ABI 1.1 to 1.3");
}

TEST_CASE("loader: a plugin that refuses a compatible host is reported separately") {
  check_failure("refuses_host", Stage::symbol, TENON_INCOMPATIBLE, "its query refuses this core", "vendor");
}

TEST_CASE("loader: sizes below those of the first version are refused") {
  check_failure("small_info", Stage::symbol, TENON_INCOMPATIBLE, "the struct_size in its answer to the query is 40, less than the",
                "tenon/backend.h");
  check_failure("small_table", Stage::self_check, TENON_INCOMPATIBLE, "the struct_size of its table is 64, less than the",
                "tenon/backend.h");
}

TEST_CASE("loader: empty mandatory slots are listed by name") {
  check_failure("null_slot", Stage::self_check, TENON_INCOMPATIBLE, "mandatory slots empty: event_query, plan_info", "vendor");
}

TEST_CASE("loader: a backend refused after its creation is destroyed") {
  const Loaded loaded({file_of("null_slot"), file_of("small_table")});
  CHECK(loaded.result.backends.empty());
  CHECK(loaded.host.live_bytes == 0);
}

TEST_CASE("loader: a name that is not a device name is refused") {
  check_failure("bad_name", Stage::symbol, TENON_INCOMPATIBLE, "its name 'Bad Name' is invalid", "device names");
}

TEST_CASE("loader: a query that writes more than it may is caught") {
  check_failure("overrun", Stage::symbol, TENON_INTERNAL, "its query wrote beyond the", "vendor");
}

TEST_CASE("loader: exceptions of a plugin are caught and reported") {
  check_failure("query_throws", Stage::symbol, TENON_INTERNAL, "its query threw an exception: nobody expects this",
                "no exception may leave");
  check_failure("create_throws", Stage::self_check, TENON_INTERNAL,
                "`create` threw an exception: the vendor's library was not expected to fail", "no exception may leave");
  check_failure("create_throws_integer", Stage::self_check, TENON_INTERNAL, "`create` threw something that is not a std::exception",
                "no exception may leave");
}

TEST_CASE("loader: a failing query and a failing create keep their code and message") {
  check_failure("query_fails", Stage::symbol, TENON_INTERNAL, "its query returned INTERNAL", "vendor");
  check_failure("create_fails", Stage::self_check, TENON_VENDOR_ERROR, "vendorInit returned 999: the driver is too old", "backends.use");
  check_failure("create_returns_nothing", Stage::self_check, TENON_INTERNAL, "`create` returned OK without a backend", "vendor");
}

TEST_CASE("loader: an empty reason is filled in and reported as a defect") {
  check_failure("create_fails_silently", Stage::self_check, TENON_INTERNAL, "`create` returned INTERNAL and gave no reason",
                "a failure without a reason is a bug in the plugin");
  check_failure("no_devices_silently", Stage::created, TENON_DEVICE_NOT_FOUND, "it offers no device and gives no reason",
                "a failure without a reason is a bug in the plugin");
}

TEST_CASE("loader: a backend without devices keeps its reason and its capabilities") {
  check_failure("no_devices", Stage::created, TENON_DEVICE_NOT_FOUND, "no card answers on the bus; seat it again", "backends.use");
  const Loaded loaded({file_of("no_devices")});
  REQUIRE(loaded.result.backends.size() == 1);
  const Backend& backend = *loaded.result.backends[0];
  CHECK(backend.devices().empty());
  CHECK(backend.info().capability_count == 2);
  CHECK(contains(backend.record().text, "no card answers"));
}

TEST_CASE("loader: a device that cannot be described keeps the vendor's message") {
  check_failure("device_info_fails", Stage::created, TENON_VENDOR_ERROR, "vendorGetName returned 7", "backends.use");
}

TEST_CASE("loader: an answer that changes between two calls is refused") {
  check_failure("impure_query", Stage::negotiated, TENON_INTERNAL, "its query is not repeatable: 'priority' differs", "vendor");
}

TEST_CASE("loader: another sanitizer and another platform are refused") {
  const std::string system_name(tenon::platform::conventions().system);
  check_failure("foreign_sanitizer", Stage::symbol, TENON_INCOMPATIBLE, "Sanitizer, the core with", "-fsanitize");
  check_failure("foreign_platform", Stage::symbol, TENON_INCOMPATIBLE, "it was built for plan9-mips, the core for " + system_name + "-",
                system_name + "-");
}

TEST_CASE("loader: only an op that is defined differently is switched off, with a reason") {
  const tenon_op_digest core[] = {{TENON_OP_Add, 14, 0x0ac45bf52f7b52f5ull}, {TENON_OP_Relu, 14, 0xeb83914624541289ull}};
  Options options;
  options.core_digests = core;
  const Loaded loaded({file_of("digest_mismatch")}, options);
  CHECK(loaded.only().healthy);
  CHECK(has_warning(loaded.only(), "Relu-14 is switched off"));
  REQUIRE(loaded.result.backends.size() == 1);
  const Backend& backend = *loaded.result.backends[0];
  REQUIRE(backend.switched_off().size() == 1);
  CHECK(backend.find_switched_off(TENON_OP_Add, 14) == nullptr);
  REQUIRE(backend.find_switched_off(TENON_OP_Relu, 14) != nullptr);
  CHECK(contains(backend.find_switched_off(TENON_OP_Relu, 14)->reason, "0000000000000bad in the plugin"));
}

#if defined(__SSE2__)
TEST_CASE("loader: flush-to-zero set by opening a library is undone and reported") {
  const unsigned before = _mm_getcsr();
  const Loaded loaded({file_of("flush_to_zero")});
  CHECK(loaded.only().healthy);
  CHECK(has_warning(loaded.only(), "opening it sets flush-to-zero for the process (linked with -ffast-math?); it has been restored"));
  CHECK((_mm_getcsr() & 0x8040) == (before & 0x8040));
}

TEST_CASE("loader: a rounding mode set by create is undone and reported") {
  const int before = std::fegetround();
  const Loaded loaded({file_of("rounds_down")});
  CHECK(loaded.only().healthy);
  CHECK(has_warning(loaded.only(), "`create` changes the"));
  CHECK(std::fegetround() == before);
}
#endif

TEST_CASE("loader: a query that starts a thread causes a warning") {
  const Loaded loaded({file_of("query_starts_thread")});
  CHECK(loaded.only().healthy);
  CHECK(has_warning(loaded.only(), "its query seems to start threads"));
}

TEST_CASE("loader: of two files with one name the first wins and the other names what shadows it") {
  const fs::path copies = plugins / "copies";
  fs::create_directories(copies);
  fs::remove(copies / backend_file_name("healthy"));
  fs::copy_file(file_of("healthy"), copies / backend_file_name("healthy"));
  const Loaded loaded({plugins / "healthy", copies});
  REQUIRE(loaded.result.records.size() == 2);
  CHECK(loaded.result.records[0].healthy);
  const Record& second = loaded.result.records[1];
  CHECK(second.shadowed);
  CHECK_FALSE(second.healthy);
  CHECK(second.reached == Stage::named);
  CHECK(contains(second.text, "another backend 'healthy' was found first: " +
                                  tenon::platform::absolute_path(tenon::platform::text_of(file_of("healthy")))));
  CHECK(contains(second.remedy, "nothing, if the first is the intended one"));
  CHECK(loaded.result.backends.size() == 1);
}

TEST_CASE("loader: a backend whose name is taken is shadowed, whatever its file name") {
  const Loaded loaded({file_of("healthy"), file_of("other_name")});
  REQUIRE(loaded.result.records.size() == 2);
  CHECK(loaded.result.records[1].shadowed);
  CHECK(loaded.result.records[1].name == "healthy");
  CHECK(has_warning(loaded.result.records[1], "its file name says 'other_name', the backend calls itself 'healthy'"));
}

TEST_CASE("loader: a file that two places name is one candidate") {
  const Loaded loaded({file_of("healthy"), plugins / "healthy"});
  CHECK(loaded.only().healthy);
}

TEST_CASE("loader: deny and allow lists keep a candidate out, unopened") {
  Options deny;
  deny.deny = {"heal*"};
  const Loaded denied({file_of("healthy"), file_of("unloadable")}, deny);
  REQUIRE(denied.result.records.size() == 2);
  CHECK(denied.result.records[0].denied);
  CHECK(denied.result.records[0].status == TENON_UNSUPPORTED);
  CHECK(contains(denied.result.records[0].text, "'heal*' in backends.deny excludes it"));
  CHECK_FALSE(denied.result.records[0].remedy.empty());
  CHECK(denied.result.records[1].healthy);
  Options allow;
  allow.allow = {"cuda", "openblas"};
  const Loaded allowed({file_of("healthy")}, allow);
  CHECK(allowed.only().denied);
  CHECK(contains(allowed.only().text, "backends.allow does not name it; it names: cuda, openblas"));
  allow.allow_key = "backends.use";
  CHECK(contains(Loaded({file_of("healthy")}, allow).only().text, "backends.use does not name it; it names: cuda, openblas"));
}

TEST_CASE("loader: a missing folder is reported as a place, not as a candidate") {
  const Loaded loaded({plugins / "nowhere", file_of("healthy")});
  CHECK(loaded.only().healthy);
  REQUIRE(loaded.result.places.size() == 2);
  CHECK(loaded.result.places[0].text == "no such folder");
  CHECK(loaded.result.places[1].text == "one file");
}

TEST_CASE("loader: without host services nothing is created") {
  Options options;
  options.places = {{file_of("healthy"), "API"}};
  const Result result = load(options);
  REQUIRE(result.records.size() == 1);
  CHECK(result.records[0].reached == Stage::self_check);
  CHECK(contains(result.records[0].text, "no host services"));
  CHECK(result.backends.empty());
}

TEST_CASE("loader: every failure has a reason and a remedy") {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(plugins)) folders.push_back(entry.path());
  const Loaded loaded(folders);
  CHECK(loaded.result.records.size() > 25);
  for (const Record& record : loaded.result.records) {
    CAPTURE(record.name);
    CHECK(record.healthy == record.text.empty());
    CHECK(record.healthy == record.remedy.empty());
    CHECK(record.healthy == (record.status == TENON_OK));
  }
}

TEST_CASE("loader: two threads may load the same files at the same time") {
  std::atomic<int> healthy{0};
  const auto work = [&] {
    for (int round = 0; round < 5; ++round) {
      const Loaded loaded({file_of("healthy"), file_of("create_throws"), file_of("missing_symbol"), file_of("no_devices")});
      for (const Record& record : loaded.result.records) healthy += record.healthy ? 1 : 0;
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  CHECK(healthy == 10);
}
