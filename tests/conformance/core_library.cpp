// SPDX-License-Identifier: Apache-2.0
// The file itself: the symbols it exports and the libraries it needs.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core.h"
#include "loader/image.h"

namespace tenon::conformance {
namespace {

const std::filesystem::path& file_of(const CaseContext& context) {
  const std::filesystem::path& file = context.device.source().file;
  if (file.empty()) throw NotRun("the backend is part of the process, not a file");
  return file;
}

/// A second public symbol may collide with that of another library, so that one is called instead of the other.
void exports(CaseContext& context) {
  const std::optional<std::vector<std::string>> all = loader::exported_symbols(file_of(context));
  if (!all) throw NotRun("the file has no section headers to find its symbols by");
  std::set<std::string> names(all->begin(), all->end());
  // Symbols that linkers add.
  for (const char* own : {TENON_BACKEND_QUERY_SYMBOL, "_init", "_fini", "_edata", "_end", "__bss_start"}) names.erase(own);
  if (names.empty()) return;
  const std::size_t count = names.size();
  std::vector<std::string> some(names.begin(), std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, 8))));
  fail(fmt::format(
      "expected {} as the only public symbol, got {} more: {}{}; compile with -fvisibility=hidden, or link with a version script",
      TENON_BACKEND_QUERY_SYMBOL, count, fmt::join(some, ", "), count > some.size() ? ", ..." : ""));
}

/// A backend uses the core only through the host table, so that it runs with any build of the core.
void needs_no_core(CaseContext& context) {
  for (const std::string& needed : loader::read_image(file_of(context)).needed) {
    if (needed.starts_with("libtenon.") || needed == "tenon.dll")
      fail(fmt::format("it needs {}, expected no library of Tenon: all services are in the host table", needed));
  }
}

}  // namespace

std::vector<Case> core_library_cases() {
  return core_cases({
      {"library/exports", exports},
      {"library/needs_no_core", needs_no_core},
  });
}

}  // namespace tenon::conformance
