// SPDX-License-Identifier: Apache-2.0
// disguised_backend.h - wraps a backend of the build and lets a test replace its slots. The kit tests it through its query; results by
// name.
#pragma once

#include <doctest/doctest.h>
#include <tenon/backend.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/case.h"
#include "conformance/conformance.h"
#include "loader/find.h"
#include "platform/environment.h"
#include "platform/library.h"
#include "platform/path.h"
#include "platform/system.h"

namespace tenon::test {

/// The backends of this program that tests judge in child processes, which are this program, too.
inline std::vector<std::pair<std::string, tenon_backend_query_fn>>& backends_of_children() {
  static std::vector<std::pair<std::string, tenon_backend_query_fn>> backends;
  return backends;
}

/// Cases of a test's own, by the profile that stands for them in its options.
inline std::map<std::string, std::vector<conformance::Case> (*)()>& case_lists_of_children() {
  static std::map<std::string, std::vector<conformance::Case> (*)()> lists;
  return lists;
}
inline std::vector<conformance::Case> cases_of_children(const conformance::Options& options) {
  const auto& lists = case_lists_of_children();
  const auto found = lists.find(options.profile);
  return found == lists.end() ? std::vector<conformance::Case>() : found->second();
}

/// What a backend of this program is to do, in this process and in its children, which are started anew: the environment tells them.
template <class Value>
class ChildSetting {
 public:
  ChildSetting(const char* name, Value first) : name_(name) {
    const auto inherited = platform::environment_variable(name);
    value_ = inherited ? static_cast<Value>(std::stoi(*inherited)) : first;
  }
  ChildSetting& operator=(Value value) {
    value_ = value;
    platform::set_environment_variable(name_, std::to_string(static_cast<int>(value)));
    return *this;
  }
  operator Value() const { return value_; }

 private:
  const char* name_;
  Value value_;
};

/// Self names the wrapped backend with `static constexpr const char *file, *name;` and may hide alter, refuse and describe. The slots that
/// it replaces call those of `real`. Only one instance may exist at a time.
template <class Self>
struct Disguise {
  static inline const tenon_backend_table* real = nullptr;  ///< of the wrapped backend, after create

  /// Puts Self's slots into a copy of the table.
  static void alter(tenon_backend_table&) {}
  /// The status that `create` returns before creating anything; TENON_OK continues.
  static tenon_status refuse(tenon_error*) { return TENON_OK; }
  /// Alters the result of the query.
  static void describe(tenon_backend_info&) {}

  static tenon_status query(const tenon_host_info* host, tenon_backend_info* out_info) {
    static std::string reason;
    static void* const library =
        platform::open_library(platform::path_of(TENON_BACKEND_DIRECTORY) / loader::backend_file_name(Self::file), reason);
    REQUIRE_MESSAGE(library != nullptr, reason);
    const tenon_status status =
        reinterpret_cast<tenon_backend_query_fn>(platform::find_symbol(library, TENON_BACKEND_QUERY_SYMBOL))(host, out_info);
    if (status != TENON_OK || !TENON_HAS(out_info, tenon_backend_info, create)) return status;  // an older host's
    real_create = out_info->create;
    out_info->create = create;
    out_info->name = Self::name;
    out_info->flags &= ~static_cast<std::uint32_t>(TENON_BACKEND_ORACLE);
    Self::describe(*out_info);
    return status;
  }

  /// Options that make the kit run the matching cases at reduced sizes in this process, where tests see what a backend did.
  static conformance::Options options(const std::string& profile, const std::string& filter) {
    conformance::Options options;
    options.backend = Self::name;
    options.registered = {{Self::name, query}};
    options.backend_directory = TENON_BACKEND_DIRECTORY;
    options.profile = profile;
    options.filter = filter;
    options.small = true;
    options.in_process = true;
    return options;
  }

  /// The same in child processes. They see only what is constant, and what tests keep as ChildSetting.
  static conformance::Options options_of_children(const std::string& profile, const std::string& filter) {
    static_cast<void>(known_to_children);
    conformance::Options result = options(profile, filter);
    result.in_process = false;
    return result;
  }

 private:
  static inline const bool known_to_children = (backends_of_children().emplace_back(Self::name, query), true);
  static inline decltype(tenon_backend_info::create) real_create = nullptr;

  static tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                             tenon_error* error) {
    static tenon_backend_table table;
    if (const tenon_status status = Self::refuse(error); status != TENON_OK) return status;
    if (const tenon_status status = real_create(host, out_backend, &real, error); status != TENON_OK) return status;
    table = *real;
    Self::alter(table);
    *out_table = &table;
    return TENON_OK;
  }
};

/// Returns `status` with a message from a slot.
inline tenon_status say(tenon_error* error, tenon_status status, const char* text) {
  if (error != nullptr && error->text != nullptr) std::snprintf(error->text, error->text_capacity, "%s", text);
  return status;
}

inline const conformance::Result& result_named(const conformance::Report& report, const std::string& name) {
  for (const conformance::Result& result : report.results) {
    if (result.name == name) return result;
  }
  FAIL("no case is called " << name);
  return report.results.front();
}
inline bool fails(const conformance::Report& report, const std::string& name) {
  return result_named(report, name).outcome == conformance::Class::fail;
}
inline bool passes(const conformance::Report& report, const std::string& name) {
  return result_named(report, name).outcome == conformance::Class::pass;
}

}  // namespace tenon::test
