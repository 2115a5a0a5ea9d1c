// SPDX-License-Identifier: Apache-2.0
// The report as one HTML page: a summary that needs no script, and a table of all cases that the page's own script filters
// (html_report_page.cpp). Cases are kept in columns, names by what differs from the name before: 60000 of them take about 2 MB.
#include "html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance.h"
#include "io/html_page.h"

namespace tenon::conformance {
namespace {

using io::html_escaped;
using nlohmann::ordered_json;

constexpr Class classes[] = {Class::fail, Class::unsupported, Class::not_run, Class::excluded, Class::pass};

/// Strings that repeat, with indices in the order of their first use.
class Pool {
 public:
  std::size_t operator()(const std::string& word) {
    const auto [entry, is_new] = indices_.emplace(word, words_.size());
    if (is_new) words_.push_back(word);
    return entry->second;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::size_t> indices_;
  std::vector<std::string> words_;
};

/// The results by class, failures first; within a class in the order of the report.
std::vector<const Result*> by_class(const Report& report) {
  std::vector<const Result*> results;
  for (const Class outcome : classes) {
    for (const Result& result : report.results) {
      if (result.outcome == outcome) results.push_back(&result);
    }
  }
  return results;
}

ordered_json table_of(const Report& report) {
  Pool ops, dtypes, texts;
  texts("");  // index 0: none
  ordered_json shared = ordered_json::array(), rest = ordered_json::array(), op = ordered_json::array(), dtype = ordered_json::array(),
               text = ordered_json::array(), more = ordered_json::object();
  std::string kinds, before;
  for (const Result* result : by_class(report)) {
    const std::string& name = result->name;
    const auto same = std::mismatch(name.begin(), name.end(), before.begin(), before.end()).first - name.begin();
    shared.push_back(same);
    rest.push_back(name.substr(static_cast<std::size_t>(same)));
    before = name;
    op.push_back(ops(result->op));
    dtype.push_back(dtypes(result->dtype));
    text.push_back(texts(result->text));
    ordered_json details;
    for (const auto& [key, field] : fact_fields) {
      if (!(result->facts.*field).empty()) details[key] = result->facts.*field;
    }
    if (!result->again.empty()) details["again"] = result->again;
    if (result->outcome == Class::unsupported && result->mandatory) details["mandatory"] = true;
    if (!details.empty()) more[std::to_string(kinds.size())] = std::move(details);
    kinds += static_cast<char>('0' + static_cast<int>(result->outcome));
  }
  return {{"seed", report.seed},   {"kinds", kinds}, {"shared", shared}, {"rest", rest},       {"op", op},
          {"dtype", dtype},        {"text", text},   {"more", more},     {"ops", ops.words()}, {"dtypes", dtypes.words()},
          {"texts", texts.words()}};
}

/// JSON for a script element: without '<' it cannot end the element.
std::string in_script(const ordered_json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string facts_of(const Report& report) {
  std::string list = "<dl class=\"about\">\n";
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) list += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", what, html_escaped(value));
  };
  add("backend", fmt::format("{} {}", report.backend, report.version));
  add("device", report.device);
  add("profile", report.filter == "*" ? report.profile : fmt::format("{}, cases {}", report.profile, report.filter));
  add("seed", std::to_string(report.seed));
  add("math", "strict: arithmetic of the operands' width");
  add("determinism", "requested by cases that compare bits");
  std::string options;
  for (const auto& [option, value] : report.options) options += fmt::format("{}{}={}", options.empty() ? "" : ", ", option, value);
  add("options", options);
  add("kit", report.kit_version);
  add("took", fmt::format("{:.1f} s", report.seconds));
  add("file", report.path);
  add("sha256", report.checksum);
  add("waivers", report.waivers);
  return list + "</dl>\n";
}

std::string counts_of(const Report& report) {
  std::string buttons = "<div id=\"classes\" role=\"group\" aria-label=\"classes of results\">\n";
  buttons += fmt::format("<button type=\"button\" data-class=\"\" aria-pressed=\"true\"><b>{}</b> all</button>\n", report.results.size());
  for (const Class outcome : classes) {
    buttons += fmt::format("<button type=\"button\" data-class=\"{0}\" class=\"{0}\" aria-pressed=\"false\"><b>{1}</b> {2}</button>\n",
                           name_of(outcome), report.count(outcome), outcome == Class::not_run ? "not run" : name_of(outcome));
  }
  return buttons + "</div>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  const std::int64_t missing = std::count_if(report.results.begin(), report.results.end(),
                                             [](const Result& r) { return r.outcome == Class::unsupported && r.mandatory; });
  std::string verdict = "No case failed, and everything mandatory is supported.";
  if (report.exit_code() != 0) {
    verdict = fmt::format("{} failed{}.", report.count(Class::fail),
                          missing == 0 ? "" : fmt::format(", {} mandatory cases are unsupported", missing));
  }
  std::string body = fmt::format("<p class=\"verdict {}\">{}</p>\n", report.exit_code() == 0 ? "pass" : "fail", verdict);
  body += facts_of(report) + counts_of(report) + html_report::filters;
  body += "<script type=\"application/json\" id=\"data\">" + in_script(table_of(report)) + "</script>\n";
  body += std::string("<script>") + html_report::script + "</script>\n";
  return io::html_page(fmt::format("Conformance of {}", report.backend), html_report::style, body);
}

}  // namespace tenon::conformance
