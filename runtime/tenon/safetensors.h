// tenon/safetensors.h - named tensors in a file, in the format of https://github.com/huggingface/safetensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// One entry of a file.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A whole file.
struct Safetensors {
  std::vector<NamedTensor> tensors;  ///< in the order of the file's header
  std::map<std::string, std::string> metadata;

  /// Null if there is none.
  const Tensor* find(const std::string& name) const;
};

/// Writes the file in one step: whatever happens, `path` holds either its old content or all of the new one.
/// Tensors on devices are downloaded, strided ones made dense.
///
/// Dtypes  all but c64 and c128.
/// Errors  a name twice, empty or not UTF-8; a file that cannot be written (path, bytes written, bytes wanted).
void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

/// Reads a file into host tensors. Every number in it is checked before it is used, so a damaged or hostile file costs no more memory
/// than its own size.
/// Errors  name the file, the tensor, what was wanted and what was got.
Safetensors load_safetensors(const std::string& path);

}  // namespace tenon
