// SPDX-License-Identifier: Apache-2.0
#include "loader/transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <system_error>

#include "loader/check.h"
#include "loader/find.h"
#include "loader/load_error.h"
#include "loader/negotiate.h"
#include "loader/open.h"
#include "loader/process_state_guard.h"
#include "platform/conventions.h"
#include "platform/path.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

std::string file_name_of(const std::string& name) {
  return fmt::format("{}tenon_transport_{}{}", platform::conventions().library_prefix, name, platform::conventions().library_suffix);
}

/// "libtenon_transport_mpi.so" -> "mpi"; nothing for other names.
std::optional<std::string> name_of_file(const fs::path& file) {
  const std::string text = platform::text_of(file.filename()), pattern = file_name_of("*");
  if (!matches_glob(pattern, text)) return std::nullopt;
  return text.substr(pattern.find('*'), text.size() + 1 - pattern.size());
}

std::string text_of(const char* text) {
  return text == nullptr ? "" : text;
}

/// Asks the library what it is.
void ask(const Library& library, OpenTransport& out) {
  const auto query = library.transport_query();
  Record changes;  // of the process
  tenon_transport_info info{};
  info.struct_size = sizeof info;
  tenon_status status = TENON_OK;
  try {
    const ProcessStateGuard guard(changes, "its query", Threads::forbidden);
    status = query(&host_info(), &info);
  } catch (const LoadError&) {
    throw;
  } catch (...) {
    throw LoadError(TENON_INTERNAL, "its query threw an exception", "no exception may leave a plugin; report this to its vendor");
  }
  out.record.warnings = changes.warnings;
  const std::uint32_t lowest = std::max(info.abi_minor_lowest, TENON_TRANSPORT_ABI_MINOR_LOWEST);
  if (info.abi_major != TENON_TRANSPORT_ABI_MAJOR || lowest > std::min(info.abi_minor_highest, TENON_TRANSPORT_ABI_MINOR)) {
    throw LoadError(TENON_INCOMPATIBLE,
                    fmt::format("it works with versions {0}.{1} to {0}.{2} of the ABI of transports, expected {3}.{4} to {3}.{5}",
                                info.abi_major, info.abi_minor_lowest, info.abi_minor_highest, TENON_TRANSPORT_ABI_MAJOR,
                                TENON_TRANSPORT_ABI_MINOR_LOWEST, TENON_TRANSPORT_ABI_MINOR),
                    fmt::format("install the plugin's build for {}", host_info().build_id));
  }
  if (status != TENON_OK) throw LoadError(status, "its query returned " + status_name(status), "report this to the plugin's vendor");
  if (!is_valid_name(info.name) || info.create == nullptr)
    throw LoadError(TENON_INTERNAL, "its query gave no name, or no `create`", "report this to the plugin's vendor");
  out.record.name = info.name;
  out.record.version = text_of(info.version);
  out.record.description = text_of(info.description);
  out.record.requirements = text_of(info.requirements);
  out.info = info;
}

/// The record of a file, after `use` has thrown no LoadError.
template <class Use>
void record(const fs::path& file, TransportRecord& out, const Use& use) {
  out.path = file;
  out.name = name_of_file(file).value_or(platform::text_of(file.stem()));
  try {
    check_readable(file);
    check_library(file);
    check_writers(file, true);
    use();
    out.usable = true;
  } catch (const LoadError& refusal) {
    out.text = refusal.text;
    out.remedy = refusal.remedy;
  }
}

OpenTransport open_file(const fs::path& file) {
  OpenTransport opened;
  record(file, opened.record, [&] {
    const Library library(file);
    ask(library, opened);
  });
  return opened;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (name_of_file(at->path())) files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<fs::path> transport_folders() {
  const Surroundings around = surroundings("TENON_TRANSPORT_PATH");
  std::vector<fs::path> folders;
  for (const SearchPlace& place : ordered_places({}, {}, {}, around)) {
    if (place.origin == "TENON_BACKEND_PATH") folders.push_back(place.path);
  }
  if (const fs::path folder = support_folder(); !folder.empty()) folders.push_back(folder / "transports");
  return folders;
}

std::vector<TransportRecord> list_transports() {
  std::vector<TransportRecord> records;
  for (const fs::path& folder : transport_folders()) {
    for (const fs::path& file : files_in(folder)) record(file, records.emplace_back(), [&] { check_dependencies(file); });
  }
  return records;
}

OpenTransport open_transport(const std::string& name_or_file) {
  if (name_or_file.find('/') != std::string::npos || name_or_file.find(fs::path::preferred_separator) != std::string::npos) {
    std::error_code ignored;
    return open_file(fs::absolute(platform::path_of(name_or_file), ignored));
  }
  std::vector<std::string> searched, known;
  for (const fs::path& folder : transport_folders()) {
    const fs::path file = folder / file_name_of(name_or_file);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return open_file(file);
    searched.push_back(platform::text_of(folder));
    for (const fs::path& other : files_in(folder)) known.push_back(*name_of_file(other));
  }
  OpenTransport missing;
  missing.record.name = name_or_file;
  missing.record.text = fmt::format("there is no {} in {}", file_name_of(name_or_file), fmt::join(searched, ", "));
  missing.record.remedy = known.empty() ? "install a transport there, or name its folder in TENON_TRANSPORT_PATH"
                                        : fmt::format("use one of those that there are: {}", fmt::join(known, ", "));
  return missing;
}

}  // namespace tenon::loader
