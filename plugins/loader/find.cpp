// SPDX-License-Identifier: Apache-2.0
#include "loader/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
// Boost.DLL 1.74 uses std::vector without including it.
#include <boost/dll/runtime_symbol_info.hpp>

#if defined(__linux__)
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>
#endif

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

#if defined(_WIN32)
constexpr std::string_view prefix = "tenon_backend_", suffix = ".dll";
constexpr char path_separator = ';';
#else
constexpr std::string_view prefix = "libtenon_backend_", suffix = ".so";
constexpr char path_separator = ':';
#endif

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}
bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

bool is_elevated() {
#if defined(__linux__)
  return getauxval(AT_SECURE) != 0 || geteuid() != getuid() || getegid() != getgid();
#else
  return false;
#endif
}

/// The library or program that contains this code, without symbolic links; empty if it is unknown.
fs::path own_file() {
  std::error_code error;
  fs::path file = boost::dll::this_line_location(error);
#if defined(__linux__)
  // The name of a program is argv[0], which need not be a path: the system knows its file.
  static const char here = 0;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(&here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 && map->l_name[0] == '\0') {
    file = boost::dll::program_location(error);
  }
#endif
  if (error) return {};
  const fs::path real = fs::canonical(file, error);
  return error ? file : real;
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
  const std::string text = path.string();
  if (starts_with(text, "~/") && !home.empty()) return (home / text.substr(2)).lexically_normal();
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return (error ? path : absolute).lexically_normal();
}

}  // namespace

std::string backend_file_name(std::string_view name) {
  return fmt::format("{}{}{}", prefix, name, suffix);
}

std::optional<std::string> backend_name_of(const fs::path& file) {
  const std::string text = file.filename().string();
  if (text.size() <= prefix.size() + suffix.size() || !starts_with(text, prefix) || !ends_with(text, suffix)) return std::nullopt;
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

Surroundings surroundings() {
  Surroundings around;
  if (const char* value = std::getenv("TENON_BACKEND_PATH")) around.environment = value;
  around.elevated = is_elevated();
  // HOME is set by whoever started the process: under elevated privilege it cannot be trusted, like TENON_BACKEND_PATH.
  if (const char* home = std::getenv("HOME"); home && !around.elevated) around.home = home;
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
      const std::size_t end = std::min(list.find(path_separator, begin), list.size());
      add(list.substr(begin, end - begin), "TENON_BACKEND_PATH");
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
  if (const fs::path folder = support_folder(); !folder.empty()) options.helper = folder / "tenon-probe";
  if (const fs::path cache = cache_folder(); !cache.empty()) options.cache = cache / "probes";
  return options;
}

fs::path cache_folder() {
  if (is_elevated()) return {};
  // The XDG base directory specification: a path that is not absolute is ignored.
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base && *base == '/') return fs::path(base) / "tenon";
  const char* const home = std::getenv("HOME");
  return home && *home == '/' ? fs::path(home) / ".cache" / "tenon" : fs::path();
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
      out_record.text = fmt::format("{} candidate{}", found.size(), found.size() == 1 ? "" : "s");
    }
    out_record.candidates = found.size();
    return found;
  }
  if (fs::exists(path, error) || path.extension() == suffix) {
    found.push_back({path, backend_name_of(path).value_or(path.stem().string()), place.origin, true});
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
  const auto matches = [&](const std::string& pattern) {
    return matches_glob(pattern, pattern.find('/') == std::string::npos ? name : path.generic_string());
  };
  const auto denying = std::find_if(options.deny.begin(), options.deny.end(), matches);
  if (denying != options.deny.end()) return fmt::format("'{}' in backends.deny excludes it", *denying);
  if (options.allow.empty() || std::any_of(options.allow.begin(), options.allow.end(), matches)) return std::nullopt;
  return fmt::format("{} does not name it; it names: {}", options.allow_key, fmt::join(options.allow, ", "));
}

}  // namespace tenon::loader
