// SPDX-License-Identifier: Apache-2.0
// tenon/load_report.h - what became of each file that could be a backend.
// Threads  any; a LoadReport is a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/error.h>

namespace tenon {

/// How far a candidate came. Each stage includes those before it.
enum class LoadStage {
  named,       ///< it was requested; nothing has been checked
  found,       ///< it is a readable file, neither shadowed nor denied
  opened,      ///< the checks before opening passed and the operating system mapped it
  symbol,      ///< it exports tenon_backend_query
  negotiated,  ///< versions, name and sizes agree with the runtime's
  self_check,  ///< its query changes nothing and is repeatable
  created,     ///< its backend object exists and is complete
  devices,     ///< it has at least one device
};
/// "named", "self-check", ...
TENON_API const char* name_of(LoadStage stage);

/// A library that a candidate needs and that was not found.
struct MissingLibrary {
  std::string name;                  ///< "libcudart.so.13"
  std::filesystem::path needed_by;   ///< the candidate, or a library that it needs
  std::vector<std::string> folders;  ///< the folders that were searched, in order
};

/// The outcome of one candidate.
struct LoadRecord {
  std::filesystem::path path;  ///< empty for a backend registered in the process
  std::string name;            ///< the backend's name; before `negotiated` the one in the file name
  /// the source of its path: "API", "command line", "TENON_BACKEND_PATH", "backends.search", ...
  std::string origin;
  LoadStage reached = LoadStage::named;
  Status status = Status::ok;           ///< the category of the failure; ok if healthy
  bool healthy = false;                 ///< the context uses it
  bool shadowed = false;                ///< an earlier candidate has the same name
  bool denied = false;                  ///< excluded by `backends.use`, `allow` or `deny`
  std::string text;                     ///< why it is not healthy; empty if it is
  std::string remedy;                   ///< what to do about it; empty if healthy
  std::vector<std::string> warnings;    ///< what the backend does against the rules
  std::vector<std::string> exposures;   ///< other users who can change the file or its folder
  std::vector<MissingLibrary> missing;  ///< the libraries that `text` names
  std::string output;  ///< what it printed in the child process that probed it; empty if healthy

  // Stated by the backend; known from `negotiated` on.
  std::string version;
  std::string build_id;
  std::string vendor;
  std::string description;
  std::string requirements;     ///< hardware and libraries, as text
  std::int32_t priority = 0;    ///< a larger one precedes
  std::uint32_t abi_major = 0;  ///< ABI version in use with it
  std::uint32_t abi_minor = 0;
  /// Canonical names of its devices ("openblas:0"); known from `devices` on.
  std::vector<std::string> devices;

  std::string summary;  ///< a paragraph: name, path, stage, reason, remedy, warnings
};

/// A folder or file that was searched.
struct LoadPlace {
  std::filesystem::path path;
  std::string origin;  ///< as in LoadRecord
  std::string text;    ///< "2 candidates", "no such folder", ...
};

/// The outcome of loading a context's backends.
struct LoadReport {
  std::vector<LoadRecord> records;  ///< in the order in which the candidates were found
  std::vector<LoadPlace> places;    ///< in the order of the search
};

}  // namespace tenon
