// SPDX-License-Identifier: Apache-2.0
// Selects the cases and writes their verdicts into the report. schedule.cpp runs them, each group in processes of its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include <tenon/error.h>
#include <tenon/sdk/kernel.h>

#include "blas.h"
#include "case.h"
#include "core/printable.h"
#include "io/atomic_file.h"
#include "loader/find.h"
#include "loader/loader.h"
#include "platform/path.h"
#include "rerun.h"
#include "schedule.h"
#include "selection.h"
#include "waivers.h"

namespace tenon::conformance {
namespace {

/// The file of a backend's waivers: named by an option, next to the backend's file under its name, or in its folder. Empty: none.
std::filesystem::path waivers_of(const Options& options, const Source& source) {
  if (!options.waivers.empty()) {
    if (!std::filesystem::exists(options.waivers))
      throw Error(fmt::format("conformance: --waivers {}: no such file", platform::text_of(options.waivers)));
    return options.waivers;
  }
  if (source.file.empty()) return {};
  std::filesystem::path own = source.file;
  own.replace_extension(".conformance.yaml");
  const std::filesystem::path of_folder = source.file.parent_path() / "conformance.yaml";
  return std::filesystem::exists(own) ? own : std::filesystem::exists(of_folder) ? of_folder : std::filesystem::path();
}

/// Verdicts become results, in the order of the cases.
class Writer {
 public:
  Writer(const Options& options, Report& report) : options_(options), report_(report) {
    const Source source = under_test(options);
    report.backend = source.name;
    report.path = platform::text_of(source.file);
    if (!source.file.empty()) report.checksum = loader::checksum(source.file);
    report.waivers = platform::text_of(waivers_of(options, source));
    if (!report.waivers.empty()) waivers_ = Waivers::read(report.waivers);
  }
  void add(const Case& test, const Verdict& verdict) {
    add({test.name,
         verdict.outcome,
         test.op,
         test.dtype == TENON_DTYPE_NONE ? "" : sdk::name_of(test.dtype),
         verdict.text,
         test.mandatory,
         verdict.facts,
         {},
         verdict.seconds},
        options_.profile, test.name);
  }
  /// A result that belongs to no case; `test` is the filter that reproduces it.
  void add(const std::string& name, const std::string& op, const Verdict& verdict, const std::string& profile, const std::string& test) {
    add({name, verdict.outcome, op, {}, verdict.text}, profile, test);
  }
  /// A waiver that matches no case is obsolete. Only a run of all cases can tell.
  void expect_waivers_used() {
    if ((options_.profile != "full" && options_.profile != "deep") || options_.filter != "*" || !options_.family.empty()) return;
    for (const std::string& match : waivers_.matching_none(report_.results)) {
      if (options_.data.empty() && match.rfind("onnx", 0) == 0) continue;
      add("conformance.yaml/" + match, "core",
          {Class::fail, fmt::format("'{}' in {} matches no case: remove the entry", match, report_.waivers)}, "full", "*");
    }
  }

 private:
  void add(Result result, const std::string& profile, const std::string& test) {
    waivers_.apply(result);
    if (result.outcome == Class::fail) result.again = command_for(options_, report_, profile, test);
    report_.results.push_back(std::move(result));
  }

  const Options& options_;
  Report& report_;
  Waivers waivers_;
};

}  // namespace

std::vector<std::string> gaps() {
  std::vector<std::string> result;
  std::set<tenon_op> with_case, judged;
  std::set<std::pair<tenon_op, tenon_dtype>> types_with_case;
  for (const OpCase& op_case : op_cases()) {
    const OpLine& line = line_of(op_case.op);
    with_case.insert(op_case.op);
    if (op_case.variants.empty()) result.push_back(fmt::format("{}: a case without variants", line.stem));
    if (op_case.bound.why == nullptr) result.push_back(fmt::format("{}: a bound without a reason", line.stem));
    for (const tenon_dtype dtype : dtypes_of(op_case)) {
      if (!types_with_case.insert({op_case.op, dtype}).second)
        result.push_back(fmt::format("{}: two cases of one dtype, {}", line.stem, sdk::name_of(dtype)));
      const bool any = std::any_of(op_case.golden.begin(), op_case.golden.end(), [&](const Golden& g) {
        return g.dtypes.empty() || std::find(g.dtypes.begin(), g.dtypes.end(), dtype) != g.dtypes.end();
      });
      if (any) judged.insert(op_case.op);
    }
    if (!op_case.gradient.empty()) judged.insert(op_case.op);
    judged.insert(op_case.gradient_ops.begin(), op_case.gradient_ops.end());
  }
  for (const OpLine& line : op_lines()) {
    if (with_case.count(line.op) == 0) {
      result.push_back(fmt::format("{}: no case in tests/conformance/ops/{}.cpp", line.stem, line.family));
    } else if (judged.count(line.op) == 0) {
      result.push_back(fmt::format("{}: neither golden vectors nor finite differences judge the oracle", line.stem));
    }
  }
  std::set<std::string> names;
  std::vector<Case> cases = op_case_list(op_cases(), [](const OpLine&) { return true; }), routines = blas_case_list();
  std::move(routines.begin(), routines.end(), std::back_inserter(cases));
  for (const Case& c : cases) {
    if (!names.insert(c.name).second) result.push_back(fmt::format("{}: two cases of that name", c.name));
  }
  for (std::string& gap : blas::gaps()) result.push_back(std::move(gap));
  for (std::string& gap : slot_gaps()) result.push_back(std::move(gap));
  return result;
}

std::vector<std::string> case_names(const Options& options) {
  std::vector<std::string> names;
  for (const Case& test : cases_of(options)) names.push_back(test.name);
  return names;
}

Report judge(const Options& options) {
  const std::vector<Case> cases = cases_of(options);
  Report report;
  report.seed = options.seed;
  report.profile = options.profile;
  report.filter = options.filter;
  report.kit_version = TENON_VERSION;
  report.options = options.options;
  Writer writer(options, report);
  const auto begin = std::chrono::steady_clock::now();
  const RunResults run = options.in_process ? run_in_process(options, cases) : run_in_children(options, cases);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (run.backend.empty()) {
    writer.add("core/lifecycle/load", "core", run.load, "core", "core/lifecycle/load");
    return report;
  }
  report.backend = run.backend;
  report.version = run.version;
  report.device = run.device;
  report.complete = run.complete;
  auto extra = run.extras.begin();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    writer.add(cases[i], run.verdicts[i]);
    for (; extra != run.extras.end() && extra->after == i; ++extra)
      writer.add(extra->name, cases[i].op, extra->verdict, options.profile, extra->filter);
  }
  writer.expect_waivers_used();
  return report;
}

int run_conformance(const Options& options) {
  static constexpr std::pair<const char*, std::string (*)(const Report&)> formats[] = {
      {"text", to_text}, {"json", to_json}, {"junit", to_junit}, {"html", to_html}};
  const auto* format = std::find_if(std::begin(formats), std::end(formats), [&](const auto& f) { return options.format == f.first; });
  if (format == std::end(formats))
    throw Error(fmt::format("conformance: unknown format '{}', expected text, json, junit or html", options.format));
  // Checked first, so that minutes of work are not lost because the folder does not exist.
  if (!options.out.empty() && !std::filesystem::is_directory(std::filesystem::absolute(options.out).parent_path()))
    throw Error(fmt::format("conformance: --out {}: its folder does not exist", platform::text_of(options.out)));
  const Report report = judge(options);
  const std::string text = format->second(report);
  if (options.out.empty()) {
    std::fputs(printable(text).c_str(), stdout);  // a backend wrote parts of it
  } else {
    io::write_atomically(platform::text_of(options.out), text);
    std::fputs((printable(summary(report)) + "\n").c_str(), stdout);
  }
  return report.exit_code();
}

}  // namespace tenon::conformance
