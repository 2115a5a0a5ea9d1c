// SPDX-License-Identifier: Apache-2.0
// The kit's cases about optional blocks: a backend that implements them all passes, one that breaks a rule fails. The blocks wrap the
// reference backend, which implements only the profile block.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "conformance/conformance.h"
#include "disguised_backend.h"
#include "testing.h"

struct tenon_packed {
  int references;
};

namespace tenon::test {
namespace {

using conformance::Class;

enum class Lie {
  none,
  key_changes,         // the key of one operand differs between two packings
  key_written_beyond,  // the key overruns its buffer
  packs_what_is_not_there,
  slot_empty,  // the pack block has no destroy
  profile_counts_wrong,
  kernel_without_a_name,
};
Lie lie = Lie::none;

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "blocks";
  static void alter(tenon_backend_table& table);
};

// ---------------------------------------------------------------- packed operands: packing is only simulated

int packed_alive = 0;
tenon_status pack_create(tenon_device*, const tenon_graph* graph, std::uint32_t value, tenon_packed** out_packed, tenon_error* error) {
  if (value >= graph->value_count && lie != Lie::packs_what_is_not_there) return say(error, TENON_INVALID_ARGUMENT, "no such value");
  *out_packed = new tenon_packed{1};
  ++packed_alive;
  return TENON_OK;
}
tenon_status pack_info(tenon_packed*, char* out_key, std::uint64_t capacity, std::uint64_t* out_size, tenon_error*) {
  static int calls = 0;
  const std::string key = lie == Lie::key_changes ? "key " + std::to_string(++calls) : "one key for all of them";
  std::snprintf(out_key, lie == Lie::key_written_beyond ? capacity + 1 : capacity, "%s", key.c_str());
  *out_size = 192;
  return TENON_OK;
}
tenon_status pack_attach(tenon_plan*, std::uint32_t, tenon_packed*, tenon_error*) {
  return TENON_OK;
}
void pack_destroy(tenon_packed* packed) {
  --packed_alive;
  delete packed;
}

// ---------------------------------------------------------------- profiles

tenon_status profile_read(tenon_plan* plan, std::uint64_t execution_id, tenon_profile_record* out_records, std::uint32_t record_stride,
                          std::uint32_t capacity, std::uint32_t* out_count, tenon_error* error) {
  const tenon_status status = Backend::real->profile->read(plan, execution_id, out_records, record_stride, capacity, out_count, error);
  if (lie == Lie::profile_counts_wrong) ++*out_count;
  if (lie == Lie::kernel_without_a_name && capacity > 0) out_records[0].algorithm[0] = 0;
  return status;
}

// ---------------------------------------------------------------- the backend

void Backend::alter(tenon_backend_table& table) {
  static tenon_pack_table pack;
  static const tenon_profile_table profile{sizeof profile, 1, profile_read};
  pack = {sizeof pack, 0, pack_create, pack_info, pack_attach, lie == Lie::slot_empty ? nullptr : pack_destroy};
  table.pack = &pack;
  table.profile = &profile;
}

conformance::Report judged(Lie how, const std::string& filter) {
  lie = how;
  conformance::Options options = Backend::options("core", filter);
  options.in_process = true;
  conformance::Report report = conformance::judge(options);
  lie = Lie::none;
  return report;
}

/// The single case that matches the filter fails with this text.
void expect_caught(Lie how, const std::string& name, const std::string& words) {
  const auto report = judged(how, name);
  REQUIRE(report.results.size() == 1);
  CHECK(report.results[0].outcome == Class::fail);
  CHECK_MESSAGE(report.results[0].text.find(words) != std::string::npos, report.results[0].text);
}

TEST_CASE("conformance: a backend that follows the rules of its optional blocks passes") {
  for (const char* name : {"core/pack/shared", "core/profile/records"}) {
    const auto report = judged(Lie::none, name);
    REQUIRE(report.results.size() == 1);
    CHECK_MESSAGE(report.results[0].outcome == Class::pass, name, ": ", report.results[0].text);
  }
  CHECK(packed_alive == 0);
}

TEST_CASE("conformance: a backend that breaks a rule of an optional block fails") {
  expect_caught(Lie::key_changes, "core/pack/shared", "the same operand packed twice has different keys");
  expect_caught(Lie::key_written_beyond, "core/pack/shared", "beyond key_capacity_bytes");
  expect_caught(Lie::packs_what_is_not_there, "core/pack/shared",
                "packing value 99 of 3: expected INVALID_ARGUMENT or UNSUPPORTED, got OK");
  expect_caught(Lie::slot_empty, "core/pack/shared", "slot 3 of the pack block is empty");
  expect_caught(Lie::profile_counts_wrong, "core/profile/records", "2 kernels were profiled, plan_info reports 1");
  expect_caught(Lie::kernel_without_a_name, "core/profile/records", "a profiled kernel has no name");
}

TEST_CASE("conformance: the cases of absent blocks are skipped without a failure") {
  conformance::Options options;
  options.backend = "openblas";
  options.backend_directory = TENON_BACKEND_DIRECTORY;
  options.profile = "core";
  options.filter = "core/pack/*";
  options.in_process = true;
  const auto report = conformance::judge(options);
  CHECK(report.count(Class::not_run) == 1);
  CHECK(contains(report.results[0].text, "tenon_backend_table.pack is NULL"));
  CHECK(report.exit_code() == 0);
}

}  // namespace
}  // namespace tenon::test
