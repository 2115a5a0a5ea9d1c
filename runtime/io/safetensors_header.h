// io/safetensors_header.h - the JSON header of a safetensors file: read with every claim checked, and written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/shape.h>

namespace tenon::io {

/// Where a tensor lies: bytes [begin, end) of the data that follows the header.
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

/// The limit of the format's own library: a longer header is an attack or an accident.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;

/// Parses and checks the header of a file whose data is `data_bytes` long. The entries cover the data without gap or overlap.
/// Errors  name `path`, the tensor, what was wanted and what was got.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_bytes);

/// The header's text, padded with spaces so that the data behind it starts at a multiple of 8.
/// Errors  a name or metadata that is not UTF-8.
std::string write_safetensors_header(const std::string& path, const SafetensorsHeader& header);

/// "F32", ... of the format; null for a dtype it does not have.
const char* safetensors_name_of(DType dtype);

/// The name as messages show it: quoted, escaped, cut if very long.
std::string shown_name(const std::string& name);

}  // namespace tenon::io
