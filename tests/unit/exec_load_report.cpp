// SPDX-License-Identifier: Apache-2.0
// Context::load_report: what became of each candidate, as plain data.
#include "backend_file.h"
#include "temporary_folder.h"
#include "testing.h"

namespace tenon::test {
namespace {

const LoadRecord& record_of(const LoadReport& report, const std::string& name) {
  for (const LoadRecord& record : report.records) {
    if (record.name == name) return record;
  }
  FAIL("no record of " << name);
  return report.records.front();
}

TEST_CASE_FIXTURE(OnReference, "load_report: a healthy backend has its version and devices, and no reason or remedy") {
  const LoadRecord& record = record_of(context.load_report(), "reference");
  CHECK(record.healthy);
  CHECK(record.reached == LoadStage::devices);
  CHECK(record.status == Status::ok);
  CHECK(std::filesystem::equivalent(record.path, built_backend("reference")));
  CHECK(record.origin == "backends.search");
  CHECK(record.devices == std::vector<std::string>{"reference:0"});
  CHECK_FALSE(record.version.empty());
  CHECK(record.text.empty());
  CHECK(record.remedy.empty());
  CHECK(contains(record.summary, "healthy"));
}

TEST_CASE_FIXTURE(InFolder, "load_report: a file that is no library has its stage, reason and remedy, and stops no other backend") {
  folder.write(backend_file("broken"), "not a library");
  Config config = test_config();
  config.backends.search.push_back(folder.path());
  const Context context(config);
  const LoadReport& report = context.load_report();
  const LoadRecord& record = record_of(report, "broken");
  CHECK_FALSE(record.healthy);
  CHECK(record.reached == LoadStage::found);
  CHECK(record.status != Status::ok);
  CHECK_FALSE(record.text.empty());
  CHECK_FALSE(record.remedy.empty());
  CHECK(record.devices.empty());
  CHECK(contains(record.summary, "stage 'found' reached"));
  CHECK(record_of(report, "reference").healthy);
}

TEST_CASE_FIXTURE(OnReference, "load_report: each place that was searched has its origin and outcome") {
  bool found = false;
  for (const LoadPlace& place : context.load_report().places) {
    CHECK_FALSE(place.text.empty());
    found |= place.origin == "backends.search" && std::filesystem::equivalent(place.path, TENON_BACKEND_DIRECTORY);
  }
  CHECK(found);
}

TEST_CASE("load_report: stages have the loader's names") {
  CHECK(std::string(name_of(LoadStage::named)) == "named");
  CHECK(std::string(name_of(LoadStage::self_check)) == "self-check");
  CHECK(std::string(name_of(LoadStage::devices)) == "devices");
}

}  // namespace
}  // namespace tenon::test
