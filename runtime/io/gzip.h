// io/gzip.h - whole files into memory, plain or gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::io {

/// The bytes of a file; a gzip file, known by its first bytes and not by its name, is inflated (all its members).
///
/// Errors  name the path: not found, a folder, unreadable, gzip data truncated, damaged or followed by something else, more than
///         `limit_bytes` of content.
std::vector<std::uint8_t> read_maybe_gzip(const std::string& path, std::uint64_t limit_bytes = std::uint64_t{1} << 34);

/// The bytes of a file as they are.
std::vector<std::uint8_t> read_file(const std::string& path, std::uint64_t limit_bytes = std::uint64_t{1} << 34);

}  // namespace tenon::io
