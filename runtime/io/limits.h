// SPDX-License-Identifier: Apache-2.0
// io/limits.h - how much a file may make the library allocate. The table below is the only list; docs/limits.md shows it to users.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::io {

// name, default, what is counted. The environment's TENON_LIMIT_<NAME> overrides the default.
#define TENON_LIMITS(X)                                                                             \
  X(file_bytes, std::uint64_t{16} << 30, "bytes of a file that is read whole")                      \
  X(inflated_bytes, std::uint64_t{4} << 30, "bytes of content in a gzip file")                      \
  X(image_pixels, std::uint64_t{1} << 26, "pixels of an image")                                     \
  X(yaml_bytes, std::uint64_t{16} << 20, "bytes of YAML text, aliases counted each time")           \
  X(yaml_values, std::uint64_t{100'000}, "values in a YAML file, aliases counted each time")        \
  X(zip_directory_bytes, std::uint64_t{64} << 20, "bytes of the directory of a zip or npz archive") \
  X(onnx_records, std::uint64_t{4'000'000}, "nodes, attributes, tensors and types in an ONNX file") \
  X(onnx_nodes, std::uint64_t{1'000'000}, "nodes of an ONNX graph with its functions, branches and loops expanded")

enum class Limit {
#define TENON_LIMIT_NAME(name, value, what) name,
  TENON_LIMITS(TENON_LIMIT_NAME)
#undef TENON_LIMIT_NAME
};

/// Errors  an environment variable that is not a positive integer.
std::uint64_t limit(Limit which);

/// Throws "<where>: expected at most 16777216 bytes of ..., got <got>; TENON_LIMIT_... raises the limit for files that you trust".
[[noreturn]] void fail_limit(const std::string& where, Limit which, const std::string& got);

/// Fails if `got` is beyond the limit.
void check_limit(const std::string& where, Limit which, std::uint64_t got);

/// Memory for `size_bytes` of a file's content.
/// Errors  OUT_OF_MEMORY, with the path and the size.
std::vector<std::uint8_t> new_buffer(const std::string& path, std::uint64_t size_bytes);

}  // namespace tenon::io
