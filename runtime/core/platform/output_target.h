// SPDX-License-Identifier: Apache-2.0
// platform/output_target.h - where a path that is to be written leads.
#pragma once

#include <string>

#include "platform/file.h"

namespace tenon::platform {

/// The target of an output path.
///
/// A symbolic link is followed, and stays, as with a shell's `>`; one that another user made is refused, because in a shared folder it may
/// lead to a file of the victim. What is not a regular file is written and never replaced: a device, a pipe, and /dev/stdout or /dev/fd/N,
/// which stand for an open descriptor of this process.
struct OutputTarget {
  std::string path;     ///< with links followed
  File in_place;        ///< open if the target is to be written, not replaced
  std::string problem;  ///< why it cannot be written: a folder, a link of another user, a pipe that nobody reads; empty if it can
};

OutputTarget find_output(const std::string& path);

}  // namespace tenon::platform
