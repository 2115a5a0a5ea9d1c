// SPDX-License-Identifier: Apache-2.0
// io/output_target.h - where a path that is to be written leads; every file that the library writes is opened through it.
#pragma once

#include <string>

#include "io/posix_file.h"

namespace tenon::io {

/// The target of an output path.
///
/// A symbolic link is followed, and stays, as with a shell's `>`; one that another user made is refused, because in a shared folder it may
/// lead to a file of the victim. What is not a regular file is written and never replaced: a device, a pipe, and /dev/stdout or /dev/fd/N,
/// which stand for an open descriptor of this process.
struct OutputTarget {
  std::string path;     ///< with links followed
  Descriptor in_place;  ///< open if the target is to be written, not replaced
};

/// Errors  a folder, a link of another user, a pipe that nobody reads; the text names the path.
OutputTarget find_output(const std::string& path);

/// Opens a file that others may read while it grows, such as a log.
///
/// Errors  those of find_output; a folder that is missing or not writable.
enum class Growth { truncate, append };
Descriptor open_growing(const std::string& path, Growth growth);

}  // namespace tenon::io
