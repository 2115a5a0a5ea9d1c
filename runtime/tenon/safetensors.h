// SPDX-License-Identifier: Apache-2.0
// tenon/safetensors.h - files of named tensors in the format of
// https://github.com/huggingface/safetensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/tensor.h>

namespace tenon {

/// A tensor and its name.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
/// Tensors by name.
using NamedTensors = std::map<std::string, Tensor>;

/// The content of a file.
struct TENON_API Safetensors {
  std::vector<NamedTensor> tensors;  ///< in the order of the file's header
  std::map<std::string, std::string> metadata;

  /// The tensor of that name, or null.
  const Tensor* find(const std::string& name) const;
};

/// Writes the file atomically: `path` holds either its old content or all of the new one. Tensors
/// on devices are downloaded, strided ones made dense.
///
/// Dtypes  all but c64 and c128.
/// Errors  a name that is a duplicate, empty or not UTF-8; a file that cannot be written (path,
///         bytes written and expected).
TENON_API void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                                const std::map<std::string, std::string>& metadata = {});

/// Reads a file into host tensors. Every number in it is validated before use, so a damaged or
/// hostile file costs no more memory than its own size.
/// Errors  name the file, the tensor, what was expected and what was found.
TENON_API Safetensors load_safetensors(const std::string& path);

}  // namespace tenon
