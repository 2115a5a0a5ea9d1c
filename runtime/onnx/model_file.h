// SPDX-License-Identifier: Apache-2.0
// onnx/model_file.h - an ONNX file with its records and the elements of its tensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <tenon/safetensors.h>
#include <tenon/tensor.h>

#include "io/mapped_file.h"
#include "onnx/records.h"

namespace tenon::onnx {

/// The dtype of elements that Tenon computes with; DType::none for others: strings, 4- and 8-bit floats, 2- and 4-bit integers.
DType dtype_of(ElementType type);
/// "float", "int64", "string": as in tensor(float). "17" if unknown.
std::string name_of(ElementType type);
/// The reverse of dtype_of.
ElementType element_type_of(DType dtype);

/// An ONNX file. Tensors view its bytes where they can, and keep them mapped.
/// Threads  any, one call at a time.
class ModelFile : public std::enable_shared_from_this<ModelFile> {
 public:
  /// Errors  those of MappedFile and parse_model.
  static std::shared_ptr<ModelFile> open(const std::filesystem::path& path);
  /// The content of a file, whose external data is in `folder`; empty: such data is an error. Errors  those of parse_model.
  static std::shared_ptr<ModelFile> of_bytes(std::string content, const std::filesystem::path& folder);
  /// A file with this content, without a graph: for tensors in files of their own.
  static std::shared_ptr<ModelFile> of(const std::filesystem::path& path, std::shared_ptr<const io::MappedFile> bytes, ModelRecord model);

  const ModelRecord& model() const { return model_; }
  /// As in messages.
  const std::string& name() const { return name_; }

  /// The elements, dense and on the host: a read-only view of the file if they are raw and aligned, else a copy. 4-bit integers become i8,
  /// u8. Errors  name the tensor: a type that Tenon does not compute with, too few or too many elements, a shape that is too large,
  /// external
  ///         data that is missing, too short, or outside the folder of the model.
  Tensor tensor(const TensorRecord& record);
  /// With zeros where no element is given. Errors  likewise; an index out of range.
  Tensor tensor(const SparseTensorRecord& record);
  /// What tensor() checks, without reading external data.
  void check(const TensorRecord& record) const;
  /// Whether a tensor is a view of the file or of external data.
  bool views(const Tensor& tensor) const;
  /// Lets the system take the mapped pages back.
  void release_pages() const;

 private:
  ModelFile(const std::filesystem::path& path, std::shared_ptr<const io::MappedFile> bytes, ModelRecord model);
  /// The bytes of external data.
  std::string_view external(const TensorRecord& record, std::uint64_t size_bytes, std::shared_ptr<const io::MappedFile>& out_owner);
  std::filesystem::path external_path(const TensorRecord& record) const;
  [[noreturn]] void fail(const TensorRecord& record, const std::string& text) const;

  std::filesystem::path folder_;
  bool has_folder_ = true;  ///< whether external data can be found
  std::string name_;
  std::shared_ptr<const io::MappedFile> bytes_;
  ModelRecord model_;
  std::map<std::filesystem::path, std::shared_ptr<const io::MappedFile>> external_;
};

/// The tensor of a file that holds a TensorProto.
NamedTensor load_tensor_file(const std::filesystem::path& path);

}  // namespace tenon::onnx
