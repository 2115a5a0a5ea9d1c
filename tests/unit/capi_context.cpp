// SPDX-License-Identifier: Apache-2.0
// The C API: objects, errors, contexts and devices.
#include "capi_testing.h"

#include <algorithm>
#include <thread>

#include "backend_file.h"
#include "rooted.h"
#include "temporary_folder.h"

using namespace tenon::test;
using nlohmann::json;

TEST_CASE("C API: errors have a status and a text, and null is success") {
  const NoLeaks none;
  CHECK(tenon_error_status(nullptr) == TENON_OK);
  CHECK(std::string(tenon_error_message(nullptr)) == "");
  TenonError* error = tenon_error_create(TENON_CANCELLED, "stopped");
  CHECK(tenon_object_count() == none.before + 1);
  CHECK(tenon_error_status(error) == TENON_CANCELLED);
  CHECK(std::string(tenon_error_message(error)) == "stopped");
  tenon_retain(error);
  tenon_release(error);
  CHECK(std::string(tenon_error_message(error)) == "stopped");
  tenon_release(error);
  CHECK(outcome(tenon_error_create(TENON_INTERNAL, nullptr)) == "INTERNAL: ");
  CHECK(std::string(tenon_status_name(TENON_FORKED)) == "FORKED");
  CHECK(std::string(tenon_status_name(1000)) == "?");
  CHECK(std::string(tenon_version()).find('.') != std::string::npos);
  tenon_retain(nullptr);
  tenon_release(nullptr);
  tenon_string_free(nullptr);
}

TEST_CASE("C API: null and objects of another kind are errors that name the argument") {
  const NoLeaks none;
  char* text = nullptr;
  CHECK_FAILS("INVALID_ARGUMENT: tenon_context_config: context: expected a context, got NULL", tenon_context_config(nullptr, &text));
  const Owned<TenonContext> context = make_context();
  CHECK_FAILS("INVALID_ARGUMENT: tenon_context_config: out_yaml: expected an address, got NULL", tenon_context_config(context, nullptr));
  const Owned<TenonTensor> tensor = make_tensor({1}, {1});
  const void* const wrong = static_cast<TenonTensor*>(tensor);
  CHECK_FAILS("INVALID_ARGUMENT: tenon_context_config: context: expected a context, got a tensor",
              tenon_context_config(static_cast<const TenonContext*>(wrong), &text));
  CHECK(std::string(tenon_device_name(static_cast<const TenonDevice*>(wrong))) == "");
  CHECK(std::string(tenon_device_name(nullptr)) == "");
  CHECK(tenon_error_status(static_cast<const TenonError*>(wrong)) == TENON_INVALID_ARGUMENT);
  CHECK(std::string(tenon_error_message(static_cast<const TenonError*>(wrong))) == "the object is no error");
  CHECK(text == nullptr);
}

TEST_CASE("C API: a context has a configuration, devices and a load report") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  char* text = nullptr;
  REQUIRE_OK(tenon_context_config(context, &text));
  CHECK(taken(text).find("reference:0") != std::string::npos);

  REQUIRE_OK(tenon_context_devices(context, &text));
  const json devices = parsed(text);
  REQUIRE(devices.size() >= 2);
  CHECK(devices[0]["name"] == "reference:0");
  CHECK(devices[0]["alias"] == "cpu:0");
  CHECK(devices[0]["kind"] == "cpu");
  CHECK(devices[0]["dtypes"].size() > 5);

  REQUIRE_OK(tenon_context_load_report(context, &text));
  const json report = parsed(text);
  const auto record = std::ranges::find_if(report["records"], [](const json& r) { return r["name"] == "reference"; });
  REQUIRE(record != report["records"].end());
  CHECK((*record)["healthy"] == true);
  CHECK((*record)["reached"] == "devices");
  CHECK((*record)["status"] == "OK");
  CHECK(report["places"].size() > 0);
}

TEST_CASE("C API: paths of plugins have the origin that the caller states, and then are not required") {
  const NoLeaks none;
  const TemporaryFolder folder;
  folder.write(backend_file("broken"), std::string("no library"));
  const std::string path = folder.path();
  const char* plugins[] = {TENON_BACKEND_DIRECTORY, path.c_str(), "/nowhere"};
  const char* origins[] = {nullptr, "package acme", "package gone"};
  TenonContextOptions options{};
  options.struct_size = sizeof options;
  options.config = "{backends: {use: [reference, openblas]}, logging: {level: 'off'}}";
  options.plugins = plugins;
  options.plugin_count = 3;
  options.plugin_origins = origins;
  Owned<TenonContext> context;
  REQUIRE_OK(tenon_context_create(&options, context.out()));
  char* text = nullptr;
  REQUIRE_OK(tenon_context_load_report(context, &text));
  const json report = parsed(text);
  const auto origin_of = [](const json& list, const char* key, const std::string& value) {
    const auto found = std::ranges::find_if(list, [&](const json& each) { return each[key] == value; });
    return found == list.end() ? std::string("not found") : (*found)["origin"].get<std::string>();
  };
  CHECK(origin_of(report["records"], "name", "reference") == "API");
  CHECK(origin_of(report["records"], "name", "broken") == "package acme");
  CHECK(origin_of(report["places"], "path", rooted("/nowhere")) == "package gone");
  options.plugin_origins = nullptr;
  TenonContext* refused = nullptr;
  CHECK_FAILS_WITH("plugin " + rooted("/nowhere") + " (API): expected a backend file or a folder",
                   tenon_context_create(&options, &refused));
}

TEST_CASE("C API: bad configurations are errors with line and key") {
  const NoLeaks none;
  TenonContext* context = nullptr;
  TenonContextOptions options{};
  options.struct_size = sizeof options;
  options.config = "device: cpu\nprecison: float32\n";
  CHECK_FAILS_WITH("<config>:2:1: unknown key 'precison'; did you mean 'precision'?", tenon_context_create(&options, &context));
  options.config = "{]";
  CHECK_FAILS_WITH("INVALID_ARGUMENT: <config>:1:", tenon_context_create(&options, &context));
  options.config = nullptr;
  options.config_file = "/nowhere/tenon.yaml";
  CHECK_FAILS_WITH("/nowhere/tenon.yaml", tenon_context_create(&options, &context));
  options.config_file = nullptr;
  options.plugin_count = 1;
  CHECK_FAILS_WITH("tenon_context_create: plugins: expected an address, got NULL", tenon_context_create(&options, &context));
  const std::string missing_file = rooted("/nowhere/" + backend_file("x"));
  const char* missing = missing_file.c_str();
  options.plugins = &missing;
  CHECK_FAILS_WITH(missing_file, tenon_context_create(&options, &context));
  options.struct_size = 0;
  CHECK_FAILS("INVALID_ARGUMENT: tenon_context_create: options: expected struct_size to be set to sizeof, got 0",
              tenon_context_create(&options, &context));
  CHECK(context == nullptr);
}

TEST_CASE("C API: fields beyond an older caller's struct are not read") {
  TenonContextOptions options{};
  const std::string config = test_config_text();
  options.config = config.c_str();
  options.struct_size = offsetof(TenonContextOptions, config_file);
  options.config_file = "/nowhere/tenon.yaml";
  Owned<TenonContext> context;
  CHECK_OK(tenon_context_create(&options, context.out()));
}

TEST_CASE("C API: a newer caller's struct is taken if what is not known of it is 0") {
  const NoLeaks none;
  const std::string config = test_config_text();
  struct {
    TenonContextOptions known;
    std::uint64_t later;
  } options{};
  options.known.struct_size = sizeof options;
  options.known.config = config.c_str();
  Owned<TenonContext> context;
  CHECK_OK(tenon_context_create(&options.known, context.out()));
  TenonContext* refused = nullptr;
  options.later = 1;
  CHECK_FAILS_WITH("options: a field is set that Tenon", tenon_context_create(&options.known, &refused));
  options.known.struct_size = sizeof options.known;
  options.known.reserved = 1;
  CHECK_FAILS_WITH("options: expected 0 in `reserved`, got 1", tenon_context_create(&options.known, &refused));
}

TEST_CASE("C API: devices are opened by any of their names, and say which are there") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Owned<TenonDevice> device;
  CHECK_OK(tenon_device_open(context, nullptr, device.out()));
  CHECK(std::string(tenon_device_name(device)) == "reference:0");
  CHECK_OK(tenon_device_open(context, "cpu:1", device.out()));
  CHECK(std::string(tenon_device_name(device)) == "openblas:0");
  char* text = nullptr;
  REQUIRE_OK(tenon_device_describe(device, &text));
  const json described = parsed(text);
  CHECK(described["backend"] == "openblas");
  CHECK(described["ops"].size() > 50);
  CHECK(described.contains("live_size_bytes"));
  CHECK_OK(tenon_device_synchronize(device));
  CHECK_OK(tenon_device_trim(device));
  TenonDevice* absent = nullptr;
  CHECK_FAILS_WITH("DEVICE_NOT_FOUND: device 'gpu:7' not found; available: reference:0 (cpu:0)",
                   tenon_device_open(context, "gpu:7", &absent));
  CHECK(absent == nullptr);
}

TEST_CASE("C API: a context may be used by several threads at once") {
  const Owned<TenonContext> context = make_context();
  std::vector<std::thread> threads;
  std::atomic<int> opened{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        TenonDevice* device = nullptr;
        if (tenon_device_open(context, "reference:0", &device) == nullptr) ++opened;
        tenon_release(device);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(opened == 200);
}
