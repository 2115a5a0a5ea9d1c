// SPDX-License-Identifier: Apache-2.0
// io/gzip.h - reads whole files, plain or gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::io {

/// The content of a file; gzip files, detected by their first bytes, are inflated (all members).
///
/// Errors  name the path: not found, a folder, unreadable, gzip data truncated, damaged or followed by other data, more than
///         `limit_bytes` of content.
std::vector<std::uint8_t> read_maybe_gzip(const std::string& path, std::uint64_t limit_bytes = std::uint64_t{1} << 34);

/// The bytes of a file, without decompression.
std::vector<std::uint8_t> read_file(const std::string& path, std::uint64_t limit_bytes = std::uint64_t{1} << 34);

}  // namespace tenon::io
