// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include <tenon/error.h>

#include "loader/find.h"

namespace tenon::conformance {
namespace {

/// Whether the glob can match a name that begins with `beginning`: a test that runs a few cases does not build the lists of all.
bool may_match(std::string_view glob, std::string_view beginning) {
  const std::string_view literal = glob.substr(0, glob.find_first_of("*?"));
  return literal.starts_with(beginning) || beginning.starts_with(literal);
}

Effort effort_of(const Options& options) {
  return options.small ? Effort::small : options.profile == "deep" ? Effort::deep : Effort::usual;
}

}  // namespace

const std::vector<std::string>& profiles() {
  static const std::vector<std::string> names{"core", "ops", "training", "blas", "onnx", "full", "deep"};
  return names;
}

const std::vector<OpCase>& op_cases() {
  static std::map<Effort, std::vector<OpCase>> lists;  // cases point into it
  std::vector<OpCase>& list = lists[effort()];
  if (list.empty()) list = all_op_cases();
  return list;
}

std::vector<Case> cases_of(const Options& options, const std::set<std::string>& ops) {
  set_effort(effort_of(options));
  std::vector<Case> cases;
  const auto append = [&](std::vector<Case> more) { std::move(more.begin(), more.end(), std::back_inserter(cases)); };
  const auto wanted = [&](const std::string& op) { return ops.empty() || ops.contains(op); };
  const auto& known = profiles();
  if (std::find(known.begin(), known.end(), options.profile) == known.end())
    throw Error(fmt::format("conformance: unknown profile '{}', expected one of {}", options.profile, fmt::join(known, ", ")));
  const std::string profile = options.profile == "deep" ? "full" : options.profile;
  if ((profile == "core" || profile == "full") && wanted("core")) {
    // It passes if the other cases can run at all. A backend that cannot be loaded fails it in every profile.
    cases.push_back({"core/lifecycle/load", "core", "core", TENON_DTYPE_NONE, true, [](CaseContext&) {}});
    append(core_case_list());
  }
  const auto begins_with = [&](const std::string& text) { return may_match(options.filter, text + "/"); };
  if (profile == "ops" || profile == "full") {
    const bool any = ops.empty() || std::ranges::any_of(op_lines(), [&](const OpLine& line) { return ops.contains(line.stem); });
    if (any) {
      append(op_case_list(op_cases(), [&](const OpLine& line) {
        return begins_with(line.stem) && wanted(line.stem) && (options.family.empty() || options.family == line.family);
      }));
    }
    if (any && begins_with("capability_consistency")) append(capability_consistency_case_list());
  }
  if ((profile == "training" || profile == "full") && wanted("training") && begins_with("training"))
    append(training_case_list(options.models));
  if (profile == "blas" || profile == "full") append(blas_case_list());
  if (profile == "onnx" && options.data.empty()) throw Error("conformance: profile onnx needs --data DIR, the folder of ONNX's tests");
  if (!options.data.empty() && (profile == "onnx" || profile == "full") && wanted("onnx")) append(onnx_case_list(options.data));
  const auto left_out = [&](const Case& c) {
    return !loader::matches_glob(options.filter, c.name) || (!options.family.empty() && options.family != c.group) || !wanted(c.op);
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), left_out), cases.end());
  if (cases.empty()) {
    throw Error(fmt::format("conformance: no case of profile {}{} matches '{}'", profile,
                            options.family.empty() ? "" : " and family " + options.family, options.filter));
  }
  return cases;
}

}  // namespace tenon::conformance
