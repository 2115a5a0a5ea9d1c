// SPDX-License-Identifier: Apache-2.0
// io/safetensors_file.h - safetensors files whose content is checked against a checksum that is kept elsewhere.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tenon/safetensors.h>

#include "io/checksum.h"

namespace tenon::io {

/// save_safetensors, and the checksum of what was written.
FileChecksum write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                               const std::map<std::string, std::string>& metadata);

/// load_safetensors of a file that should have this checksum.
/// Errors  also: another size, another checksum; the text says that the file is damaged.
Safetensors read_safetensors(const std::string& path, const FileChecksum& expected);

}  // namespace tenon::io
