// SPDX-License-Identifier: Apache-2.0
// platform/unbuffered_file.h - files read past the page cache, for measurements.
#pragma once

#include <string>

#include "platform/file.h"

namespace tenon::platform {

/// Opens a file for reads that the system does not keep in memory: O_DIRECT, on Windows FILE_FLAG_NO_BUFFERING. Offsets, sizes and
/// addresses are then multiples of 4096. Fails where the file system offers none.
File open_unbuffered(const std::string& path, std::error_code& out_error);

}  // namespace tenon::platform
