// SPDX-License-Identifier: Apache-2.0
// io/safetensors_header.h - the JSON header of a safetensors file: reads it with full validation, and writes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/shape.h>

namespace tenon::io {

/// The position of a tensor: bytes [begin, end) of the data after the header.
struct TensorEntry {
  std::string name;
  DType dtype = DType::none;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< in the order of the text
  std::map<std::string, std::string> metadata;
};

/// The limit of the reference library of the format.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;

/// Parses and checks the header of a file whose data is `data_bytes` long. The entries cover the data without gap or overlap.
/// Errors  name `path`, the tensor, the expected and the actual value.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_bytes);

/// The header's text, padded with spaces so that the data after it starts at a multiple of 8 bytes.
/// Errors  a name or metadata that is not UTF-8.
std::string write_safetensors_header(const std::string& path, const SafetensorsHeader& header);

/// The format's name of a dtype ("F32"); null if it has none.
const char* safetensors_name_of(DType dtype);

/// The name for messages: quoted, escaped, truncated if very long.
std::string shown_name(const std::string& name);

}  // namespace tenon::io
