// SPDX-License-Identifier: Apache-2.0
// The report as JUnit XML, for test runners and viewers.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance.h"

namespace tenon::conformance {
namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";

/// Text escaped for XML 1.0. It may quote the backend's messages: invalid UTF-8 and characters that XML does not allow are replaced.
std::string escaped(const std::string& text) {
  using nlohmann::json;
  const auto valid = json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
  std::string result;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\n' || c == '\t') {
      result += fmt::format("&#{};", static_cast<int>(c));  // attributes would lose it
    } else if (static_cast<unsigned char>(c) < ' ') {
      result += replacement;
    } else if (valid.compare(i, 3, "\xEF\xBF\xBE") == 0 || valid.compare(i, 3, "\xEF\xBF\xBF") == 0) {  // U+FFFE and U+FFFF
      result += replacement;
      i += 2;
    } else {
      result += c;
    }
  }
  return result;
}

bool is_failure(const Result& result) {
  return result.outcome == Class::fail || (result.outcome == Class::unsupported && result.mandatory);
}

std::string body_of(const Report& report, const Result& result) {
  std::string body = result.text + "\n";
  for (const auto& [name, field] : fact_fields) {
    if (!(result.facts.*field).empty()) body += fmt::format("{}: {}\n", name, result.facts.*field);
  }
  if (result.outcome == Class::fail) body += fmt::format("seed: {}\n", report.seed);
  if (!result.again.empty()) body += "again: " + result.again + "\n";
  return body;
}

}  // namespace

std::string to_junit(const Report& report) {
  std::int64_t failures = 0;
  for (const Result& result : report.results) failures += is_failure(result) ? 1 : 0;
  const std::int64_t total = static_cast<std::int64_t>(report.results.size()), passes = report.count(Class::pass);
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\"", total, failures,
                                         total - failures - passes, report.seconds);
  std::string xml =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n<testsuite name=\"{1}\" {0}>\n<properties>\n", counts,
                  escaped(fmt::format("conformance.{}.{}", report.backend, report.profile)));
  const auto property = [&](const std::string& name, const std::string& value) {
    xml += fmt::format("<property name=\"{}\" value=\"{}\"/>\n", escaped(name), escaped(value));
  };
  property("version", report.version);
  property("path", report.path);
  property("sha256", report.checksum);
  property("device", report.device);
  property("seed", std::to_string(report.seed));
  property("kit", report.kit_version);
  for (const auto& [option, value] : report.options) property("option." + option, value);
  xml += "</properties>\n";
  for (const Result& result : report.results) {
    const std::string where = fmt::format("{}.{}{}", report.backend, result.op, result.dtype.empty() ? "" : "." + result.dtype);
    xml += fmt::format("<testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\"", escaped(where), escaped(result.name), result.seconds);
    if (result.outcome == Class::pass) {
      xml += result.text.empty() ? "/>\n" : fmt::format("><system-out>{}</system-out></testcase>\n", escaped(result.text));
      continue;
    }
    const char* kind = is_failure(result) ? "failure" : "skipped";
    const std::string first = result.text.substr(0, result.text.find('\n'));
    xml += fmt::format("><{0} message=\"{1}\">{2}</{0}></testcase>\n", kind, escaped(fmt::format("{}: {}", name_of(result.outcome), first)),
                       escaped(body_of(report, result)));
  }
  return xml + "</testsuite>\n</testsuites>\n";
}

}  // namespace tenon::conformance
