// SPDX-License-Identifier: Apache-2.0
// tenon bench compare OLD NEW
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include <tenon/error.h>

#include "bench/benchmarks.h"

namespace tenon::bench {
namespace {

using Json = nlohmann::json;

Json read_report(const std::string& file) {
  std::ifstream in(file);
  if (!in)
    throw Error(
        fmt::format("bench compare: {}: expected a report that `tenon bench ... --json FILE` wrote, got no file that can be read", file));
  Json report = Json::parse(in, nullptr, false);
  const bool fits = report.is_object() && report.contains("machine") && report["machine"].is_object() && report.contains("benchmarks") &&
                    report["benchmarks"].is_array() &&
                    std::all_of(report["benchmarks"].begin(), report["benchmarks"].end(), [](const Json& b) {
                      return b.is_object() && b.contains("name") && b["name"].is_string() && b.contains("median_ns") &&
                             b["median_ns"].is_number() && b.contains("iqr_ns") && b["iqr_ns"].is_number();
                    });
  if (!fits) throw Error(fmt::format("bench compare: {} is not a report; expected a file written by `tenon bench ... --json FILE`", file));
  return report;
}

const Json* find(const Json& report, const std::string& name) {
  for (const Json& benchmark : report["benchmarks"]) {
    if (benchmark["name"] == name) return &benchmark;
  }
  return nullptr;
}

}  // namespace

void compare(const std::string& old_file, const std::string& new_file) {
  const Json before = read_report(old_file), after = read_report(new_file);
  std::size_t width = 9;
  for (const Json& benchmark : after["benchmarks"]) width = std::max(width, benchmark["name"].get<std::string>().size());
  fmt::print("{:<{}}  {:>10}  {:>10}  {:>8}\n", "benchmark", width, "old", "new", "speed-up");
  for (const Json& benchmark : after["benchmarks"]) {
    const std::string name = benchmark["name"];
    const Json* const other = find(before, name);
    if (other == nullptr) {
      fmt::print("{:<{}}  {:>10}  {:>10}\n", name, width, "-", format_duration(benchmark["median_ns"]));
      continue;
    }
    const double was = (*other)["median_ns"], is = benchmark["median_ns"];
    // A change smaller than the spread of either side is not significant.
    const double spread = std::max((*other)["iqr_ns"].get<double>(), benchmark["iqr_ns"].get<double>());
    fmt::print("{:<{}}  {:>10}  {:>10}  {:>7.3f}x{}\n", name, width, format_duration(was), format_duration(is), was / is,
               std::abs(was - is) <= spread ? "  (within the spread)" : "");
  }
  for (const Json& benchmark : before["benchmarks"]) {
    const std::string name = benchmark["name"];
    if (find(after, name) == nullptr) fmt::print("{:<{}}  {:>10}  {:>10}\n", name, width, format_duration(benchmark["median_ns"]), "-");
  }
  for (const char* key : {"processor", "processors", "threads", "device", "compiler"}) {
    const Json was = before["machine"].value(key, Json()), is = after["machine"].value(key, Json());
    if (was != is) fmt::print("note: {} differs: {} then, {} now\n", key, was.dump(), is.dump());
  }
  std::fflush(stdout);
}

}  // namespace tenon::bench
