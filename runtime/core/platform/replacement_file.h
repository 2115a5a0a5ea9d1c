// SPDX-License-Identifier: Apache-2.0
// platform/replacement_file.h - a new file that takes the place of another when it is complete.
#pragma once

#include <string>
#include <system_error>

#include "platform/file.h"

namespace tenon::platform {

/// A temporary file in the folder of a target. It has no name until name(), where the system supports that (O_TMPFILE), so that a killed
/// process leaves nothing; elsewhere it has a random one, `.<name>.<digits>.tmp`. A link or file of that name, planted in a shared folder,
/// is never written to.
///
/// Threads  one at a time.
class ReplacementFile {
 public:
  ReplacementFile() = default;
  ~ReplacementFile() { discard(); }
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;

  /// Opens the folder of the target. `folder` is "." for a name alone.
  std::error_code open_folder(const std::string& folder, const std::string& name);
  /// Creates the file, with the permissions of the one that it will replace.
  std::error_code create();
  File& file() { return file_; }
  /// Gives the file its temporary name, if it has none.
  std::error_code name();
  /// Gives it the name of the target, in place of the file there. `synced`: and returns when the name is on the disk.
  std::error_code replace(bool synced);
  /// Removes the file unless it has replaced the target.
  void discard();

 private:
  std::string folder_, name_;
  std::string temporary_;  ///< its name in the folder; empty while it has none
  File folder_file_;       ///< on POSIX: all names are relative to it
  File file_;
};

}  // namespace tenon::platform
