// SPDX-License-Identifier: Apache-2.0
// loader/find.h - search places, candidates and their file names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

/// "libtenon_backend_cuda.so" -> "cuda" (Windows: "tenon_backend_cuda.dll"); nothing for any other name.
std::optional<std::string> backend_name_of(const std::filesystem::path& file);
/// The inverse: "cuda" -> "libtenon_backend_cuda.so".
std::string backend_file_name(std::string_view name);

/// What default_places() reads from the process, so that tests can set it.
struct Surroundings {
  std::string environment;        ///< TENON_BACKEND_PATH, ':'-separated (Windows ';')
  bool elevated = false;          ///< set-user-id and the like: the environment is not the user's to trust
  std::filesystem::path home;     ///< empty: unknown
  std::filesystem::path library;  ///< the file that contains this code; empty: unknown
};
/// `variable`: the environment variable to read as `environment`.
Surroundings surroundings(const char* variable = "TENON_BACKEND_PATH");
std::vector<SearchPlace> ordered_places(std::span<const SearchPlace> api, std::span<const std::filesystem::path> command_line,
                                        std::span<const std::filesystem::path> yaml, const Surroundings& around);

/// The folder lib/tenon of the installation or build tree that this code is part of: it has backends/ and the programs that Tenon starts.
/// Empty if unknown.
std::filesystem::path support_folder();

/// A file that may be a backend. `path` is absolute.
struct Candidate {
  std::filesystem::path path;
  std::string name;  ///< from the file name; for an explicit file of another name, its stem
  std::string origin;
  bool named = false;  ///< the file itself was given, not its folder
};

/// The candidates of one place, sorted by file name, and the place's record. Not recursive. A place that does not exist and is named like
/// a library is a candidate too, so that its absence gets a record.
std::vector<Candidate> candidates_in(const SearchPlace& place, PlaceRecord& out_record);

/// True if the whole `text` matches a pattern of * (any characters) and ? (one character).
bool matches_glob(std::string_view pattern, std::string_view text);

/// Why the allow or deny list excludes a candidate; nothing if it may be loaded.
std::optional<std::string> denied_by(const Options& options, const std::string& name, const std::filesystem::path& path);

}  // namespace tenon::loader
