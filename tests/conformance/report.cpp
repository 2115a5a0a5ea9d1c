// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance.h"
#include "text/counted.h"

namespace tenon::conformance {

const char* name_of(Class value) {
  static constexpr const char* names[] = {"pass", "fail", "unsupported", "excluded", "not_run"};
  return names[static_cast<int>(value)];
}

std::int64_t Report::count(Class outcome) const {
  return std::count_if(results.begin(), results.end(), [&](const Result& r) { return r.outcome == outcome; });
}

int Report::exit_code() const {
  const bool good = std::none_of(results.begin(), results.end(), [](const Result& r) {
    return r.outcome == Class::fail || (r.outcome == Class::unsupported && r.mandatory);
  });
  return good && complete && !results.empty() ? 0 : 1;
}

namespace {

/// Indents all lines after the first.
std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "             ";
  }
  return result;
}

/// "f16, bf16, f32": the floating dtypes that a complete run without failures has passed; empty for any other run.
std::string certified(const Report& report) {
  std::string text;
  if ((report.profile != "full" && report.profile != "deep") || report.filter != "*" || report.exit_code() != 0) return text;
  for (const char* const dtype : {"f16", "bf16", "f32", "f64"}) {
    const auto has = [&](auto... outcomes) {
      return std::ranges::any_of(report.results, [&](const Result& r) { return r.dtype == dtype && ((r.outcome == outcomes) || ...); });
    };
    if (has(Class::pass) && !has(Class::fail, Class::unsupported)) text += (text.empty() ? "" : ", ") + std::string(dtype);
  }
  return text;
}

}  // namespace

std::string summary(const Report& report) {
  const std::string subject =
      report.device.empty() ? report.backend + ", not loaded" : fmt::format("{} {} on {}", report.backend, report.version, report.device);
  return fmt::format("{}, profile {}, seed {}: {} pass, {} fail, {} unsupported, {} excluded, {} not run", subject, report.profile,
                     report.seed, report.count(Class::pass), report.count(Class::fail), report.count(Class::unsupported),
                     report.count(Class::excluded), report.count(Class::not_run));
}

std::string to_text(const Report& report) {
  std::string text;
  for (const Result& result : report.results) {
    if (result.outcome != Class::fail) continue;
    text += fmt::format("FAIL         {}\n             {}\n", result.name, indented(result.text));
    if (!result.again.empty()) text += fmt::format("             again: {}\n", result.again);
  }
  for (const Result& result : report.results) {
    if (result.outcome != Class::unsupported) continue;
    text += fmt::format("UNSUPPORTED  {}{}\n             {}\n", result.name, result.mandatory ? " (mandatory)" : "", indented(result.text));
  }
  for (const Result& result : report.results) {
    if (result.outcome == Class::pass && !result.text.empty())
      text += fmt::format("MEASURED     {}: {}\n", result.name, indented(result.text));
  }
  // One line per reason, since there are many cases and few reasons.
  for (const Class outcome : {Class::excluded, Class::not_run}) {
    std::map<std::string, std::int64_t> reasons;
    for (const Result& result : report.results) {
      if (result.outcome == outcome) ++reasons[result.text];
    }
    for (const auto& [reason, count] : reasons)
      text += fmt::format("{:12} {}: {}\n", outcome == Class::excluded ? "EXCLUDED" : "NOT RUN",
                          counted(static_cast<std::uint64_t>(count), "case"), indented(reason));
  }
  if (report.profile == "onnx") {
    text += fmt::format("{} on {}: {} pass\n", counted(report.results.size(), "ONNX test"), report.backend, report.count(Class::pass));
  }
  const std::string dtypes = certified(report);
  return text + summary(report) + "\n" + (dtypes.empty() ? "" : "certified for " + dtypes + "\n");
}

std::string to_json(const Report& report) {
  nlohmann::ordered_json root;
  for (const Class outcome : {Class::pass, Class::fail, Class::unsupported, Class::excluded, Class::not_run}) {
    root["summary"][name_of(outcome)] = report.count(outcome);
  }
  root["backend"] = report.backend;
  root["version"] = report.version;
  root["path"] = report.path;
  root["sha256"] = report.checksum;
  root["device"] = report.device;
  root["profile"] = report.profile;
  root["filter"] = report.filter;
  root["seed"] = report.seed;
  root["kit"] = report.kit_version;
  root["waivers"] = report.waivers;
  root["options"] = nlohmann::ordered_json::object();
  for (const auto& [option, value] : report.options) root["options"][option] = value;
  root["certified"] = certified(report);
  root["complete"] = report.complete;
  root["seconds"] = report.seconds;
  root["cases"] = nlohmann::ordered_json::array();
  for (const Result& result : report.results) {
    nlohmann::ordered_json entry{{"name", result.name},      {"class", name_of(result.outcome)}, {"op", result.op},
                                 {"dtype", result.dtype},    {"mandatory", result.mandatory},    {"text", result.text},
                                 {"seconds", result.seconds}};
    if (result.outcome == Class::fail) entry["seed"] = report.seed;
    for (const auto& [name, field] : fact_fields) {
      if (!(result.facts.*field).empty()) entry[name] = result.facts.*field;
    }
    if (!result.again.empty()) entry["again"] = result.again;
    root["cases"].push_back(std::move(entry));
  }
  // Texts quote the backend's messages: bytes that are not UTF-8 are replaced.
  return root.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tenon::conformance
