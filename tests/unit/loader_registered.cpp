// SPDX-License-Identifier: Apache-2.0
// Backends that are registered in the process: the loader's whole path without a file.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "loader/loader.h"

using namespace tenon::loader;

namespace {

int live = 0, shut_down = 0;
tenon_backend_table table;
tenon_blas_table blas;
tenon_host host;

void unused() {}

tenon_status create(const tenon_host* services, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error*) {
  CHECK(services == &host);
  // Slots that no test calls only have to exist.
  void (*const slot)() = unused;
  const std::size_t first = offsetof(tenon_backend_table, shutdown), end = offsetof(tenon_backend_table, blas);
  table = {};
  for (std::size_t at = first; at < end; at += sizeof slot) std::memcpy(reinterpret_cast<char*>(&table) + at, &slot, sizeof slot);
  table.struct_size = sizeof table;
  table.shutdown = [](tenon_backend*) { ++shut_down; };
  table.destroy = [](tenon_backend*) { --live; };
  table.device_count = [](tenon_backend*, std::uint32_t* out_count, tenon_error*) {
    *out_count = 2;
    return tenon_status{TENON_OK};
  };
  table.device_info = [](tenon_backend*, std::uint32_t index, tenon_device_info* out_info, tenon_error*) {
    // An older plugin, whose device_info ended before the memory sizes.
    out_info->struct_size = offsetof(tenon_device_info, memory_size_bytes);
    out_info->identity = index == 0 ? "first" : "second";
    out_info->memory_size_bytes = 12345;
    return tenon_status{TENON_OK};
  };
  blas = {};
  blas.struct_size = 8;
  std::memcpy(&blas.rotg, &slot, sizeof slot);
  table.blas = &blas;
  ++live;
  *out_backend = reinterpret_cast<tenon_backend*>(&live);
  *out_table = &table;
  return TENON_OK;
}

tenon_status query(const tenon_host_info*, tenon_backend_info* out_info) {
  out_info->abi_major = TENON_ABI_MAJOR;
  out_info->abi_minor_lowest = 0;
  out_info->abi_minor_highest = TENON_ABI_MINOR + 5;
  out_info->priority = 30;
  out_info->name = "inside";
  out_info->create = create;
  return TENON_OK;
}

Options options_for(tenon_backend_query_fn function) {
  Options options;
  options.registered = {{"inside", function}};
  options.make_host = [](const tenon_backend_info& info, std::uint32_t abi_minor) {
    CHECK(std::string(info.name) == "inside");
    CHECK(abi_minor == TENON_ABI_MINOR);
    return &host;
  };
  return options;
}

}  // namespace

TEST_CASE("registered: a backend in the process takes the same path as a file") {
  live = shut_down = 0;
  Result result = load(options_for(query));
  REQUIRE(result.records.size() == 1);
  const Record& record = result.records[0];
  CHECK_MESSAGE(record.healthy, record.text);
  CHECK(record.path.empty());
  CHECK(record.origin == "in the process");
  CHECK(record.priority == 30);
  CHECK(record.abi_minor == TENON_ABI_MINOR);
  CHECK(record.abi_minor_highest == TENON_ABI_MINOR + 5);
  REQUIRE(record.devices.size() == 2);
  CHECK(record.devices[1].name == "inside:1");
  CHECK(record.devices[1].identity == "second");
  CHECK(record.version.empty());
  REQUIRE(result.backends.size() == 1);
  CHECK(result.backends[0]->abi_minor() == TENON_ABI_MINOR);
  CHECK(live == 1);
  result.backends.clear();
  CHECK(live == 0);
  CHECK(shut_down == 1);
}

TEST_CASE("registered: fields that an older plugin lacks are unset") {
  const Result result = load(options_for(query));
  REQUIRE(result.backends.size() == 1);
  const Backend& backend = *result.backends[0];
  CHECK(backend.devices()[0].struct_size == sizeof(tenon_device_info));
  CHECK(backend.devices()[0].memory_size_bytes == 0);
  REQUIRE(backend.table().blas != nullptr);
  CHECK(backend.table().blas->struct_size == sizeof(tenon_blas_table));
  CHECK((backend.table().blas->rotg == nullptr));
  CHECK(backend.table().capture == nullptr);
}

TEST_CASE("registered: a BLAS routine without dtypes is rejected") {
  const auto whole_slot = [](const tenon_host_info* info, tenon_backend_info* out_info) {
    query(info, out_info);
    out_info->create = [](const tenon_host* given, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
      const tenon_status status = create(given, out_backend, out_table, error);
      blas.struct_size = sizeof blas;
      return status;
    };
    return tenon_status{TENON_OK};
  };
  const Result result = load(options_for(whole_slot));
  REQUIRE(result.records.size() == 1);
  CHECK(result.records[0].text.find("its BLAS table has rotg without a dtype in rotg_dtypes") != std::string::npos);
  CHECK(live == 0);
}

TEST_CASE("registered: an optional block without a size is rejected and the backend destroyed") {
  live = 0;
  const auto broken = [](const tenon_host_info* info, tenon_backend_info* out_info) {
    const tenon_status status = query(info, out_info);
    out_info->create = [](const tenon_host* services, tenon_backend** out_backend, const tenon_backend_table** out_table,
                          tenon_error* error) {
      const tenon_status created = create(services, out_backend, out_table, error);
      blas.struct_size = 0;
      return created;
    };
    return status;
  };
  const Result result = load(options_for(broken));
  REQUIRE(result.records.size() == 1);
  CHECK(result.records[0].text == "the struct_size of its BLAS table is 0: it was not set");
  CHECK(result.backends.empty());
  CHECK(live == 0);
}

TEST_CASE("registered: an implausible number of devices is rejected") {
  live = 0;
  const auto broken = [](const tenon_host_info* info, tenon_backend_info* out_info) {
    const tenon_status status = query(info, out_info);
    out_info->create = [](const tenon_host* services, tenon_backend** out_backend, const tenon_backend_table** out_table,
                          tenon_error* error) {
      const tenon_status created = create(services, out_backend, out_table, error);
      table.device_count = [](tenon_backend*, std::uint32_t* out_count, tenon_error*) {
        *out_count = 0xa5a5a5a5;
        return tenon_status{TENON_OK};
      };
      return created;
    };
    return status;
  };
  {
    const Result result = load(options_for(broken));
    REQUIRE(result.records.size() == 1);
    CHECK_FALSE(result.records[0].healthy);
    CHECK(result.records[0].text == "it reports 2779096485 devices, expected at most 4096: the count was never set");
  }
  CHECK(live == 0);
}

TEST_CASE("registered: it precedes every file, and a second one of the same name is shadowed") {
  Options options = options_for(query);
  options.registered.emplace_back("inside", query);
  const Result result = load(options);
  REQUIRE(result.records.size() == 2);
  CHECK(result.records[0].healthy);
  CHECK(result.records[1].shadowed);
  CHECK(result.records[1].text == "another backend 'inside' was found first: part of this program (in the process)");
}

TEST_CASE("registered: stages have names and a record is printed as a paragraph") {
  CHECK(std::string(name_of(Stage::self_check)) == "self-check");
  Record record;
  record.name = "cuda";
  record.path = "/opt/libtenon_backend_cuda.so";
  record.origin = "API";
  record.reached = Stage::found;
  record.status = TENON_INCOMPATIBLE;
  record.text = "too old";
  record.remedy = "update it";
  record.warnings = {"odd"};
  CHECK(describe(record) ==
        "cuda (/opt/libtenon_backend_cuda.so, API): not usable, stage 'found' reached, INCOMPATIBLE: too old\n  remedy: update it\n"
        "  warning: odd");
}
