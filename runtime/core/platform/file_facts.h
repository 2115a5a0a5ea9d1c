// SPDX-License-Identifier: Apache-2.0
// platform/file_facts.h - what the system knows of a file besides its content.
#pragma once

#include <filesystem>
#include <string>

namespace tenon::platform {

/// Size and dates of a file: what changes, as far as the file system can tell, when its bytes do. Empty if the file is gone.
std::string file_stamp(const std::filesystem::path& file);

/// When the content was last written, as exactly as the file system has it: std::filesystem::last_write_time of MinGW has whole seconds.
/// The earliest time if there is no such file.
std::filesystem::file_time_type write_time(const std::filesystem::path& file);

/// Who may change a file or a folder.
struct FileAccess {
  bool everyone_writes = false;
  bool only_adds = false;     ///< of a folder: everyone may add files, and cannot replace those of others (/tmp)
  std::string foreign_owner;  ///< "user 'ada'" if the owner is neither this user nor an administrator of the system; empty otherwise
};
FileAccess file_access(const std::filesystem::path& path);

/// A command that keeps all but the owner and the owner's group from writing: "chmod o-w PATH".
std::string command_to_forbid_writing(const std::filesystem::path& path);
/// A command that makes the file the system's: "chown root PATH". Empty if this user may not do that.
std::string command_to_take_over(const std::filesystem::path& path);

}  // namespace tenon::platform
