// SPDX-License-Identifier: Apache-2.0
// binary_cache.h - files that keep compiled programs for later processes.
//
// A file is named by a hash of its key: source, options, device, driver. It contains the key itself, so that a collision is found, and a
// checksum of everything, so that a file which was truncated or changed is found.
#pragma once

#include <string>

namespace tenon::opencl {

enum class CacheResult { found, absent, damaged };

/// The name of the file for a key.
std::string cache_file_name(const std::string& key);
/// Reads the bytes that were stored under this key.
CacheResult read_cache_file(const std::string& file, const std::string& key, std::string& out_bytes);
/// Writes to a temporary file and renames it, so that readers see all or nothing. A failure is no error: the program is compiled again.
void write_cache_file(const std::string& file, const std::string& key, const std::string& bytes);

}  // namespace tenon::opencl
