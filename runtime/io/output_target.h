// SPDX-License-Identifier: Apache-2.0
// io/output_target.h - where a path that is to be written leads; every file that the library writes is opened through it.
#pragma once

#include <string>

#include "platform/file.h"
#include "platform/output_target.h"

namespace tenon::io {

using platform::OutputTarget;

/// The target of an output path. Errors  a folder, a link of another user, a pipe that nobody reads; the text names the path.
OutputTarget find_output(const std::string& path);

/// Opens a file that others may read while it grows, such as a log.
///
/// Errors  those of find_output; a folder that is missing or not writable.
enum class Growth { truncate, append };
platform::File open_growing(const std::string& path, Growth growth);

/// The same as a stream, which the caller closes.
std::FILE* open_growing_stream(const std::string& path, Growth growth);

}  // namespace tenon::io
