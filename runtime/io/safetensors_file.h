// SPDX-License-Identifier: Apache-2.0
// io/safetensors_file.h - safetensors files whose content is checked against checksums that are kept elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tenon/safetensors.h>

#include "io/checksum.h"
#include "io/input_file.h"
#include "io/safetensors_header.h"

namespace tenon::io {

/// save_safetensors, and the checksums of what was written.
FileChecksum write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                               const std::map<std::string, std::string>& metadata);

/// A file that should have these checksums, open for reading. The header is read at once, tensors as they are asked for; what is read is
/// checked, and nothing else is read. A file whose parts have no checksums is read whole.
/// Errors  those of load_safetensors; another size, another checksum: the text says that the file is damaged, and which tensor.
class SafetensorsFile {
 public:
  SafetensorsFile(std::string path, FileChecksum expected);

  const SafetensorsHeader& header() const { return header_; }
  /// The tensors whose names are wanted, in the order of the header.
  std::vector<NamedTensor> read(const std::function<bool(const std::string& name)>& is_requested);
  /// Reads all tensors and drops them.
  void check();
  /// So far.
  std::uint64_t read_size_bytes() const { return read_size_bytes_; }
  std::uint64_t size_bytes() const { return file_.size_bytes; }

 private:
  Crc32 read_bytes(void* out_bytes, std::uint64_t size_bytes, Crc32 checksum);
  void read_tensor(std::size_t in_order, Tensor& out_tensor);

  const std::string path_;
  const FileChecksum expected_;
  const OpenFile file_;
  SafetensorsHeader header_;
  std::vector<std::size_t> by_offset_;  ///< indices of the header's tensors, in the order of the data
  std::uint64_t data_begin_ = 0, position_ = 0, read_size_bytes_ = 0;
  Crc32 begin_;  ///< of what lies before the data
};

}  // namespace tenon::io
