// SPDX-License-Identifier: Apache-2.0
#include "exec/load_report.h"

namespace tenon {

const char* name_of(LoadStage stage) {
  // The enumerations have the same order.
  static_assert(static_cast<int>(LoadStage::named) == static_cast<int>(loader::Stage::named));
  static_assert(static_cast<int>(LoadStage::self_check) == static_cast<int>(loader::Stage::self_check));
  static_assert(static_cast<int>(LoadStage::devices) == static_cast<int>(loader::Stage::devices));
  return loader::name_of(static_cast<loader::Stage>(stage));
}

namespace exec {
namespace {

LoadRecord record_of(const loader::Record& record) {
  LoadRecord shown;
  shown.path = record.path;
  shown.name = record.name;
  shown.origin = record.origin;
  shown.reached = static_cast<LoadStage>(record.reached);
  shown.status = static_cast<Status>(record.status);
  shown.healthy = record.healthy;
  shown.shadowed = record.shadowed;
  shown.denied = record.denied;
  shown.text = record.text;
  shown.remedy = record.remedy;
  shown.warnings = record.warnings;
  shown.exposures = record.exposures;
  for (const loader::MissingLibrary& library : record.missing) shown.missing.push_back({library.name, library.needed_by, library.folders});
  if (!record.healthy) shown.output = record.output;
  shown.version = record.version;
  shown.build_id = record.build_id;
  shown.vendor = record.vendor;
  shown.description = record.description;
  shown.requirements = record.requirements;
  shown.priority = record.priority;
  shown.abi_major = record.abi_major;
  shown.abi_minor = record.abi_minor;
  for (const loader::DeviceSummary& device : record.devices) shown.devices.push_back(device.name);
  shown.summary = loader::describe(record);
  return shown;
}

}  // namespace

LoadReport load_report_of(const loader::Result& result) {
  LoadReport report;
  for (const loader::Record& record : result.records) report.records.push_back(record_of(record));
  for (const loader::PlaceRecord& place : result.places) report.places.push_back({place.path, place.origin, place.text});
  return report;
}

}  // namespace exec
}  // namespace tenon
