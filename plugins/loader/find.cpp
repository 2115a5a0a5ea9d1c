// SPDX-License-Identifier: Apache-2.0
#include "loader/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "platform/conventions.h"
#include "platform/library.h"
#include "platform/path.h"
#include "platform/system.h"
#include "text/counted.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

const std::string prefix = std::string(platform::conventions().library_prefix) + "tenon_backend_";
const std::string suffix(platform::conventions().library_suffix);

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}
bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

/// The library or program that contains this code, without symbolic links; empty if it is unknown.
fs::path own_file() {
  static const char here = 0;
  return platform::module_of(&here);
}

/// lib/tenon of the tree that a file is in: lib/libtenon.so, a program or DLL in bin/, or a program in lib/tenon.
fs::path support_folder_of(const fs::path& file) {
  const fs::path here = file.parent_path(), below = here / "tenon", aside = here.parent_path() / "lib" / "tenon";
  const auto has_backends = [](const fs::path& folder) {
    std::error_code ignored;
    return fs::is_directory(folder / "backends", ignored);
  };
  if (here.filename() == "tenon" && has_backends(here)) return here;
  return !has_backends(below) && (has_backends(aside) || here.filename() == "bin") ? aside : below;
}

fs::path made_absolute(const fs::path& path, const fs::path& home) {
  if (auto part = path.begin(); !home.empty() && part != path.end() && *part == "~" && ++part != path.end()) {
    fs::path below = home;
    for (; part != path.end(); ++part) below /= *part;
    return below.lexically_normal();
  }
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return (error ? path : absolute).lexically_normal();
}

/// With the separator that patterns have on every system.
std::string with_slashes(std::string text) {
  if constexpr (fs::path::preferred_separator != '/') std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

}  // namespace

std::string backend_file_name(std::string_view name) {
  return fmt::format("{}{}{}", prefix, name, suffix);
}

std::optional<std::string> backend_name_of(const fs::path& file) {
  const std::string text = platform::text_of(file.filename());
  if (text.size() <= prefix.size() + suffix.size() || !starts_with(text, prefix) || !ends_with(text, suffix)) return std::nullopt;
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

Surroundings surroundings(const char* variable) {
  Surroundings around;
  around.environment = platform::environment_variable(variable).value_or("");
  around.elevated = platform::is_elevated();
  // HOME is set by whoever started the process: under elevated privilege it cannot be trusted, like TENON_BACKEND_PATH.
  if (!around.elevated) around.home = platform::path_of(platform::home_folder());
  around.library = own_file();
  return around;
}

std::vector<SearchPlace> ordered_places(std::span<const SearchPlace> api, std::span<const fs::path> command_line,
                                        std::span<const fs::path> yaml, const Surroundings& around) {
  std::vector<SearchPlace> places;
  const auto add = [&](const fs::path& path, const std::string& origin) {
    if (!path.empty()) places.push_back({made_absolute(path, around.home), origin});
  };
  for (const SearchPlace& place : api) add(place.path, place.origin);
  for (const fs::path& path : command_line) add(path, "command line");
  if (!around.elevated) {
    // An empty entry would mean the working directory to a shell; here it means nothing.
    const std::string& list = around.environment;
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(list.find(platform::conventions().path_separator, begin), list.size());
      add(platform::path_of(list.substr(begin, end - begin)), "TENON_BACKEND_PATH");
      begin = end + 1;
    }
  }
  for (const fs::path& path : yaml) add(path, "backends.search");
  if (!around.library.empty()) add(support_folder_of(around.library) / "backends", "next to the library");
  return places;
}

std::vector<SearchPlace> default_places(std::span<const SearchPlace> api, std::span<const fs::path> command_line,
                                        std::span<const fs::path> yaml) {
  return ordered_places(api, command_line, yaml, surroundings());
}

fs::path support_folder() {
  const fs::path file = own_file();
  return file.empty() ? file : support_folder_of(file);
}

ProbeOptions default_probe(ProbeMode mode) {
  ProbeOptions options;
  options.mode = mode;
  if (mode == ProbeMode::never) return options;
  if (const fs::path folder = support_folder(); !folder.empty())
    options.helper = (folder / "tenon-probe") += platform::conventions().program_suffix;
  if (const fs::path cache = cache_folder(); !cache.empty()) options.cache = cache / "probes";
  return options;
}

fs::path cache_folder() {
  const std::string base = platform::is_elevated() ? "" : platform::cache_folder();
  return base.empty() ? fs::path() : platform::path_of(base) / "tenon";
}

std::vector<Candidate> candidates_in(const SearchPlace& place, PlaceRecord& out_record) {
  const fs::path path = made_absolute(place.path, {});
  out_record = {path, place.origin, {}, 0};
  std::vector<Candidate> found;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    fs::directory_iterator entries(path, error);
    for (const fs::directory_iterator end; !error && entries != end; entries.increment(error)) {
      const auto name = backend_name_of(entries->path());
      std::error_code ignored;
      if (name && !entries->is_directory(ignored)) found.push_back({entries->path(), *name, place.origin, false});
    }
    std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.path < b.path; });
    if (error) {
      out_record.text = fmt::format("the folder cannot be read: {}", error.message());
    } else if (found.empty()) {
      out_record.text = fmt::format("the folder has no file named {}<name>{}", prefix, suffix);
    } else {
      out_record.text = counted(found.size(), "candidate");
    }
    out_record.candidates = found.size();
    return found;
  }
  if (fs::exists(path, error) || path.extension() == suffix) {
    found.push_back({path, backend_name_of(path).value_or(platform::text_of(path.stem())), place.origin, true});
    out_record.text = fs::exists(path, error) ? "one file" : "no such file";
  } else {
    out_record.text = "no such folder";
  }
  out_record.candidates = found.size();
  return found;
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  // On a mismatch the last star takes one more character. Backtracking to one star is enough: what it matched can only grow.
  std::size_t p = 0, t = 0, after_star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::string> denied_by(const Options& options, const std::string& name, const fs::path& path) {
  const auto matches = [&](const std::string& listed) {
    const std::string pattern = with_slashes(listed);
    return matches_glob(pattern, pattern.find('/') == std::string::npos ? name : with_slashes(platform::text_of(path)));
  };
  const auto denying = std::find_if(options.deny.begin(), options.deny.end(), matches);
  if (denying != options.deny.end()) return fmt::format("'{}' in backends.deny excludes it", *denying);
  if (options.allow.empty() || std::any_of(options.allow.begin(), options.allow.end(), matches)) return std::nullopt;
  return fmt::format("{} does not name it; it names: {}", options.allow_key, fmt::join(options.allow, ", "));
}

}  // namespace tenon::loader
