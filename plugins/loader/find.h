// loader/find.h - where candidates come from and what their files are called.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

/// "libtenon_backend_cuda.so" -> "cuda" (Windows: "tenon_backend_cuda.dll"); nothing for any other name.
std::optional<std::string> backend_name_of(const std::filesystem::path& file);

/// What default_places() reads of the process, so that tests can say it themselves.
struct Surroundings {
  std::string environment;        ///< TENON_BACKEND_PATH, ':'-separated (Windows ';')
  bool elevated = false;          ///< set-user-id and the like: the environment is not the user's to trust
  std::filesystem::path home;     ///< empty: unknown
  std::filesystem::path library;  ///< the file that contains this code
};
Surroundings surroundings();
std::vector<SearchPlace> ordered_places(std::span<const std::filesystem::path> api, std::span<const std::filesystem::path> command_line,
                                        std::span<const std::filesystem::path> yaml, const Surroundings& around);

/// A file that may be a backend. `path` is absolute.
struct Candidate {
  std::filesystem::path path;
  std::string name;  ///< from the file name; for an explicit file of another name, its stem
  std::string origin;
  bool named = false;  ///< the file itself, not its folder
};

/// The candidates of one place, sorted by file name, and what is to say about the place. Not recursive. A place that is not there and is
/// named like a library is a candidate too, so that its absence gets a record.
std::vector<Candidate> candidates_in(const SearchPlace& place, PlaceRecord& out_record);

/// True if `text` matches a pattern of * (any characters) and ? (one character) as a whole.
bool matches_glob(std::string_view pattern, std::string_view text);

/// The pattern that keeps a candidate out, as a sentence; nothing if it may be loaded.
std::optional<std::string> denied_by(const Options& options, const std::string& name, const std::filesystem::path& path);

}  // namespace tenon::loader
