// SPDX-License-Identifier: Apache-2.0
// The kit's cases about optional blocks: a backend that breaks a rule fails. The blocks wrap the reference backend, which has only the
// profile block; tests/mutants has backends that share packed operands.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "conformance/conformance.h"
#include "disguised_backend.h"
#include "testing.h"

namespace tenon::test {
namespace {

using conformance::Class;

enum class Lie {
  none,
  key_changes,      // the key of one operand differs between two questions
  key_without_end,  // it has no NUL
  slot_empty,       // the pack block has no destroy
  profile_counts_wrong,
  kernel_without_a_name,
};
Lie lie = Lie::none;

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "blocks";
  static void alter(tenon_backend_table& table);
};

// ---------------------------------------------------------------- packed operands: only described

tenon_status pack_describe(tenon_device*, const tenon_graph*, const tenon_plan_options*, tenon_packing* out_packings, std::uint32_t stride,
                           tenon_error*) {
  static int calls = 0;
  auto& weights = *reinterpret_cast<tenon_packing*>(reinterpret_cast<char*>(out_packings) + stride);
  weights.size_bytes = 192;
  std::snprintf(weights.key, sizeof weights.key, "key %d", ++calls);
  if (lie == Lie::key_without_end) std::memset(weights.key, 'x', sizeof weights.key);
  return TENON_OK;
}
tenon_status pack_create(tenon_device*, const tenon_graph*, const tenon_plan_options*, const std::uint32_t*, std::uint32_t, tenon_packed**,
                         tenon_error* error) {
  return say(error, TENON_INTERNAL, "nothing is packed here");
}
void pack_destroy(tenon_packed*) {}

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
  pack = {sizeof pack, 0, pack_describe, pack_create, lie == Lie::slot_empty ? nullptr : pack_destroy};
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

TEST_CASE("conformance: a backend that follows the rules of a block passes, whatever another block does") {
  const auto report = judged(Lie::none, "core/profile/records");
  REQUIRE(report.results.size() == 1);
  CHECK_MESSAGE(report.results[0].outcome == Class::pass, report.results[0].text);
}

TEST_CASE("conformance: a backend that breaks a rule of an optional block fails") {
  expect_caught(Lie::key_changes, "core/pack/shared", "the same operand described twice has different keys");
  expect_caught(Lie::key_without_end, "core/pack/shared", "does not end in NUL");
  expect_caught(Lie::slot_empty, "core/pack/shared", "slot 2 of the pack block is empty");
  expect_caught(Lie::profile_counts_wrong, "core/profile/records", "2 kernels were profiled, plan_info reports 1");
  expect_caught(Lie::kernel_without_a_name, "core/profile/records", "a profiled kernel has no name");
}

TEST_CASE("conformance: the cases of absent blocks are skipped without a failure") {
  conformance::Options options;
  options.backend = "reference";
  options.backend_directory = TENON_BACKEND_DIRECTORY;
  options.profile = "core";
  options.filter = "core/pack/*";
  options.in_process = true;
  const auto report = conformance::judge(options);
  CHECK(report.results.size() > 1);
  CHECK(report.count(Class::not_run) == static_cast<std::int64_t>(report.results.size()));
  CHECK(contains(report.results[0].text, "tenon_backend_table.pack is NULL"));
  CHECK(report.exit_code() == 0);
}

}  // namespace
}  // namespace tenon::test
