// SPDX-License-Identifier: Apache-2.0
// loader/transport.h - finds and opens the plugin that connects processes (tenon/transport.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/transport.h>

#include "loader/loader.h"

namespace tenon::loader {

/// What is known of a file that may be a transport. Holds no pointer into the library.
struct TransportRecord {
  std::filesystem::path path;
  std::string name;         ///< from the file name, later from the transport itself
  std::string version;      ///< known from a successful query on, as the following
  std::string description;  ///< "Open MPI v4.1.4"
  std::string requirements;
  bool usable = false;                     ///< it may be created
  std::string text;                        ///< why it is not usable; never empty then
  std::string remedy;                      ///< what to do about it; never empty then
  std::vector<std::string> warnings = {};  ///< about what its query does
};

/// An opened transport, not connected. The library stays mapped.
struct OpenTransport {
  TransportRecord record;
  tenon_transport_info info{};  ///< complete; valid if the record says usable
};

/// Folders with transports: those of TENON_TRANSPORT_PATH, unless the process has elevated privilege, then the one next to the library.
std::vector<std::filesystem::path> transport_folders();
/// All files named as transports in these folders, checked without being opened: for the doctor.
std::vector<TransportRecord> list_transports();
/// Opens the transport of this name, or of this file if it has a path separator. Errors are in the record; they name the folders searched
/// and the transports that there are.
OpenTransport open_transport(const std::string& name_or_file);

}  // namespace tenon::loader
