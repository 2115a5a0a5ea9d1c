// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include <tenon/error.h>

#include "core/host_memory.h"
#include "io/lfs_pointer.h"
#include "platform/file.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw data is little-endian and is used as it is");

/// What TensorProto.DataType says of an element.
struct ElementInfo {
  ElementType type;
  const char* name;
  DType dtype;  ///< that holds it here; none: not supported
  int bits;
};
constexpr std::array elements = {
    ElementInfo{ElementType::f32, "float", DType::f32, 32},
    ElementInfo{ElementType::u8, "uint8", DType::u8, 8},
    ElementInfo{ElementType::i8, "int8", DType::i8, 8},
    ElementInfo{ElementType::u16, "uint16", DType::u16, 16},
    ElementInfo{ElementType::i16, "int16", DType::i16, 16},
    ElementInfo{ElementType::i32, "int32", DType::i32, 32},
    ElementInfo{ElementType::i64, "int64", DType::i64, 64},
    ElementInfo{ElementType::string, "string", DType::none, 0},
    ElementInfo{ElementType::boolean, "bool", DType::boolean, 8},
    ElementInfo{ElementType::f16, "float16", DType::f16, 16},
    ElementInfo{ElementType::f64, "double", DType::f64, 64},
    ElementInfo{ElementType::u32, "uint32", DType::u32, 32},
    ElementInfo{ElementType::u64, "uint64", DType::u64, 64},
    ElementInfo{ElementType::c64, "complex64", DType::none, 64},
    ElementInfo{ElementType::c128, "complex128", DType::none, 128},
    ElementInfo{ElementType::bf16, "bfloat16", DType::bf16, 16},
    ElementInfo{ElementType::f8e4m3fn, "float8e4m3fn", DType::none, 8},
    ElementInfo{ElementType::f8e4m3fnuz, "float8e4m3fnuz", DType::none, 8},
    ElementInfo{ElementType::f8e5m2, "float8e5m2", DType::none, 8},
    ElementInfo{ElementType::f8e5m2fnuz, "float8e5m2fnuz", DType::none, 8},
    ElementInfo{ElementType::u4, "uint4", DType::u8, 4},
    ElementInfo{ElementType::i4, "int4", DType::i8, 4},
    ElementInfo{ElementType::f4e2m1, "float4e2m1", DType::none, 4},
    ElementInfo{ElementType::f8e8m0, "float8e8m0", DType::none, 8},
    ElementInfo{ElementType::u2, "uint2", DType::u8, 2},
    ElementInfo{ElementType::i2, "int2", DType::i8, 2},
};

const ElementInfo* find(ElementType type) {
  const auto* found = std::ranges::find(elements, type, &ElementInfo::type);
  return found == elements.end() ? nullptr : found;
}

/// Unpacks integers of fewer than 8 bits, the first in the lowest bits.
void unpack(const ElementInfo& info, const std::uint8_t* from, std::int64_t count, std::uint8_t* out) {
  const int per_byte = 8 / info.bits;
  const auto mask = static_cast<unsigned>((1 << info.bits) - 1);
  const auto sign = static_cast<unsigned>(1 << (info.bits - 1));
  for (std::int64_t i = 0; i < count; ++i) {
    const unsigned bits = (static_cast<unsigned>(from[i / per_byte]) >> (info.bits * static_cast<int>(i % per_byte))) & mask;
    const bool negative = info.dtype == DType::i8 && (bits & sign) != 0;
    out[i] = static_cast<std::uint8_t>(negative ? bits | ~mask : bits);
  }
}

/// Writes elements that the file lists as wider integers.
template <class From>
void narrow(const std::vector<From>& from, DType dtype, Tensor& out) {
  const auto copy = [&]<class To>(To* to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<To>(from[i]);
  };
  switch (size_of(dtype)) {
    case 1:
      return copy(static_cast<std::uint8_t*>(out.raw()));
    case 2:
      return copy(static_cast<std::uint16_t*>(out.raw()));
    case 4:
      return copy(static_cast<std::uint32_t*>(out.raw()));
    default:
      return copy(static_cast<std::uint64_t*>(out.raw()));
  }
}

std::uint64_t bytes_of(const ElementInfo& info, std::int64_t count) {
  return (static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(info.bits) + 7) / 8;
}

}  // namespace

DType dtype_of(ElementType type) {
  const ElementInfo* info = find(type);
  return info == nullptr || info->bits < 8 ? DType::none : info->dtype;
}

std::string name_of(ElementType type) {
  const ElementInfo* info = find(type);
  return info == nullptr ? std::to_string(static_cast<std::int32_t>(type)) : info->name;
}

ElementType element_type_of(DType dtype) {
  const auto* found = std::ranges::find(elements, dtype, &ElementInfo::dtype);
  return dtype == DType::none || found == elements.end() ? ElementType::undefined : found->type;
}

ModelFile::ModelFile(const std::filesystem::path& path, std::shared_ptr<const io::MappedFile> bytes, ModelRecord model)
    : folder_(path.parent_path().empty() ? "." : path.parent_path()),
      name_(platform::text_of(path)),
      bytes_(std::move(bytes)),
      model_(std::move(model)) {}

std::shared_ptr<ModelFile> ModelFile::open(const std::filesystem::path& path) {
  auto bytes = io::MappedFile::open(platform::text_of(path));
  ModelRecord model = parse_model(platform::text_of(path), bytes->bytes());
  return of(path, std::move(bytes), std::move(model));
}

std::shared_ptr<ModelFile> ModelFile::of_bytes(std::string content, const std::filesystem::path& folder) {
  const std::string name = "<bytes>";
  auto bytes = io::MappedFile::of(std::move(content));
  ModelRecord model = parse_model(name, bytes->bytes());
  std::shared_ptr<ModelFile> file = of(platform::path_of(name), std::move(bytes), std::move(model));
  file->folder_ = folder;
  file->has_folder_ = !folder.empty();
  return file;
}

std::shared_ptr<ModelFile> ModelFile::of(const std::filesystem::path& path, std::shared_ptr<const io::MappedFile> bytes,
                                         ModelRecord model) {
  return std::shared_ptr<ModelFile>(new ModelFile(path, std::move(bytes), std::move(model)));
}

NamedTensor load_tensor_file(const std::filesystem::path& path) {
  auto bytes = io::MappedFile::open(platform::text_of(path));
  const TensorRecord record = parse_tensor(platform::text_of(path), bytes->bytes());
  return {std::string(record.name), ModelFile::of(path, std::move(bytes), {})->tensor(record)};
}

void ModelFile::fail(const TensorRecord& record, const std::string& text) const {
  throw Error(fmt::format("{}: tensor '{}': {}", name_, record.name, text));
}

std::filesystem::path ModelFile::external_path(const TensorRecord& record) const {
  if (!has_folder_) fail(record, "expected the folder of its external data next to the bytes of the model, got none");
  std::filesystem::path location;
  for (const TextEntry& entry : record.location) {
    if (entry.key == "location") location = platform::path_of(entry.value);
  }
  if (location.empty()) fail(record, "expected the location of its external data, got none");
  const bool leaves = std::ranges::any_of(location, [](const std::filesystem::path& part) { return part == ".."; });
  if (location.has_root_path() || leaves) {
    fail(record, fmt::format("expected external data in the folder of the model, got the path '{}'", platform::text_of(location)));
  }
  const std::filesystem::path path = folder_ / location;
  // A link could lead out of the folder, and so could one of the folders on the way.
  std::filesystem::path step = folder_;
  for (const std::filesystem::path& part : location) {
    step /= part;
    const platform::LinkKind link = platform::link_kind(platform::text_of(step));  // none for what is missing: opening it says so
    if (link != platform::LinkKind::none) {
      fail(record, fmt::format("expected external data in a file of its own, got '{}', which is a {} link: copy the file",
                               platform::text_of(step), link == platform::LinkKind::hard ? "hard" : "symbolic"));
    }
  }
  return path;
}

std::string_view ModelFile::external(const TensorRecord& record, std::uint64_t size_bytes,
                                     std::shared_ptr<const io::MappedFile>& out_owner) {
  const auto number = [&](std::string_view key) -> std::optional<std::uint64_t> {
    for (const TextEntry& entry : record.location) {
      if (entry.key != key) continue;
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(entry.value.data(), entry.value.data() + entry.value.size(), value);
      if (error != std::errc() || end != entry.value.data() + entry.value.size())
        fail(record, fmt::format("{} of its external data: expected a number of bytes, got '{}'", key, entry.value));
      return value;
    }
    return std::nullopt;
  };
  const std::filesystem::path path = external_path(record);
  auto& file = external_[path];
  if (file == nullptr) {
    std::error_code failure;  // a file that cannot be looked at may exist: opening it says why not
    if (!std::filesystem::exists(path, failure) && !failure) {
      fail(record, fmt::format("expected its external data in '{}', got no such file; copy it into the folder of the model, too",
                               platform::text_of(path)));
    }
    file = io::MappedFile::open(platform::text_of(path));
    if (io::is_lfs_pointer(file->bytes()))
      fail(record, fmt::format("expected its external data in '{}', {}", platform::text_of(path), io::got_lfs_pointer));
  }
  const std::uint64_t offset = number("offset").value_or(0);
  const std::uint64_t length = number("length").value_or(size_bytes);
  if (length != size_bytes) {
    fail(record, fmt::format("expected {} of external data, got a length of {}", counted(size_bytes, "byte"), length));
  }
  const std::string_view all = file->bytes();
  if (offset > all.size() || all.size() - offset < size_bytes) {
    fail(record, fmt::format("expected {} at offset {} of '{}', got a file of {}", counted(size_bytes, "byte"), offset,
                             platform::text_of(path), counted(all.size(), "byte")));
  }
  out_owner = file;
  return all.substr(offset, size_bytes);
}

namespace {

/// The shape of a tensor. Errors  as text, to which the caller adds the tensor's name.
std::optional<std::string> read_shape(const std::vector<std::int64_t>& dims, Shape& out_shape) {
  try {
    out_shape = Shape(std::span(dims));
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

/// Memory for a weight. Matrices above the size that transformers of 100 million parameters have are mostly those of products with one row:
/// they are read in each run instead of being packed, faster from huge pages.
Tensor memory_of_weight(DType dtype, const Shape& shape) {
  constexpr std::int64_t smallest_large = 12 * 1024 * 1024;
  const std::int64_t bytes = shape.count() * size_of(dtype);
  if (shape.rank() != 2 || bytes < smallest_large) return Tensor::empty(dtype, shape);
  void* const memory = allocate_host(static_cast<std::uint64_t>(bytes), 64, HostPages::huge);
  if (memory == nullptr) return Tensor::empty(dtype, shape);  // throws the error
  return Tensor::borrow(memory, dtype, shape, std::shared_ptr<void>(memory, free_host));
}

}  // namespace

void ModelFile::check(const TensorRecord& record) const {
  const ElementInfo* info = find(record.type);
  if (info == nullptr || info->dtype == DType::none) {
    throw Error(Status::unsupported, fmt::format("{}: tensor '{}' has elements of type {}, which Tenon does not compute with", name_,
                                                 record.name, name_of(record.type)));
  }
  Shape shape;
  if (const auto error = read_shape(record.dims, shape)) fail(record, *error);
  const std::int64_t count = shape.count();
  if (static_cast<std::uint64_t>(count) > (std::uint64_t{1} << 56)) fail(record, fmt::format("the shape {} is too large", shape.str()));
  if (record.external) {
    static_cast<void>(external_path(record));
    return;
  }
  const std::uint64_t expected = bytes_of(*info, count);
  const bool packed = info->bits < 8;
  const auto elements_given = static_cast<std::uint64_t>(packed ? expected : static_cast<std::uint64_t>(count));
  const std::size_t listed =
      record.floats.size() + record.doubles.size() + record.int32s.size() + record.int64s.size() + record.uint64s.size();
  if (listed == 0 ? record.raw.size() != expected : listed != elements_given || !record.raw.empty()) {
    fail(record, listed == 0 ? fmt::format("shape {} expects {} bytes, got {}", shape.str(), expected, record.raw.size())
                             : fmt::format("shape {} expects {} elements, got {}", shape.str(), elements_given, listed));
  }
}

Tensor ModelFile::tensor(const TensorRecord& record) {
  check(record);
  const ElementInfo& info = *find(record.type);
  const Shape shape{std::span(record.dims)};
  const std::int64_t count = shape.count();
  const std::uint64_t size = bytes_of(info, count);
  std::shared_ptr<const void> owner = shared_from_this();
  std::string_view raw = record.raw;
  if (record.external) {
    std::shared_ptr<const io::MappedFile> file;
    raw = external(record, size, file);
    owner = file;
  }
  const bool is_raw = record.external || !raw.empty();
  const auto address = reinterpret_cast<std::uintptr_t>(raw.data());
  const bool bools = info.dtype == DType::boolean;
  if (is_raw && info.bits >= 8 && !bools && address % static_cast<std::uintptr_t>(size_of(info.dtype)) == 0) {
    // Nothing writes to it: parameters and constants are copied to the memory of a device or read there.
    return Tensor::borrow(const_cast<char*>(raw.data()), info.dtype, shape, std::const_pointer_cast<void>(owner));
  }
  Tensor tensor = memory_of_weight(info.dtype, shape);
  auto* out = static_cast<std::uint8_t*>(tensor.raw());
  if (info.bits < 8) {
    std::vector<std::uint8_t> listed(record.int32s.size());
    std::ranges::transform(record.int32s, listed.begin(), [](std::int32_t byte) { return static_cast<std::uint8_t>(byte); });
    if (!is_raw && listed.size() != size) fail(record, fmt::format("expected {} packed bytes, got {}", size, listed.size()));
    unpack(info, is_raw ? reinterpret_cast<const std::uint8_t*>(raw.data()) : listed.data(), count, out);
  } else if (is_raw) {
    std::memcpy(out, raw.data(), size);
  } else if (info.dtype == DType::f32 && !record.floats.empty()) {
    std::memcpy(out, record.floats.data(), size);
  } else if (info.dtype == DType::f64 && !record.doubles.empty()) {
    std::memcpy(out, record.doubles.data(), size);
  } else if (info.dtype != DType::f32 && info.dtype != DType::f64 && record.floats.empty() && record.doubles.empty()) {
    const auto n = static_cast<std::size_t>(count);
    if (record.int32s.size() == n) {
      narrow(record.int32s, info.dtype, tensor);
    } else if (record.int64s.size() == n) {
      narrow(record.int64s, info.dtype, tensor);
    } else if (record.uint64s.size() == n) {
      narrow(record.uint64s, info.dtype, tensor);
    } else {
      fail(record, "its elements are in several lists");
    }
  } else if (count > 0) {
    fail(record, fmt::format("its elements of type {} are in a list of another type", info.name));
  }
  if (bools) {
    std::for_each_n(out, count, [](std::uint8_t& byte) { byte = byte != 0; });  // kernels expect 0 and 1
  }
  return tensor;
}

Tensor ModelFile::tensor(const SparseTensorRecord& record) {
  const Tensor values = tensor(record.values);
  const Tensor indices = tensor(record.indices);
  Shape shape;
  if (const auto error = read_shape(record.dims, shape)) fail(record.values, *error);
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t n = values.count();
  const bool flat = indices.shape().rank() == 1 && indices.count() == n;
  const bool by_axis = indices.shape().rank() == 2 && indices.shape()[0] == n && indices.shape()[1] == rank;
  if (indices.dtype() != DType::i64 || (!flat && !by_axis)) {
    fail(record.values, fmt::format("expected an index i64({0}) or i64({0},{1}), got {2}", n, rank, indices.str()));
  }
  Tensor dense = Tensor::zeros(values.dtype(), shape);
  const auto strides = dense_strides(shape);
  const auto* at = indices.data<std::int64_t>();
  const auto width = static_cast<std::size_t>(size_of(values.dtype()));
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t place = flat ? at[i] : 0;
    bool inside = place >= 0 && place < shape.count();
    for (std::int64_t d = 0; !flat && d < rank; ++d) {
      const std::int64_t index = at[i * rank + d];
      inside = inside && index >= 0 && index < shape[static_cast<std::size_t>(d)];
      if (inside) place += index * strides[static_cast<std::size_t>(d)];
    }
    if (!inside) fail(record.values, fmt::format("the index of element {} is outside of shape {}", i, shape.str()));
    std::memcpy(static_cast<char*>(dense.raw()) + static_cast<std::size_t>(place) * width,
                static_cast<const char*>(values.raw()) + static_cast<std::size_t>(i) * width, width);
  }
  return dense;
}

bool ModelFile::views(const Tensor& tensor) const {
  const auto is_in = [&](const io::MappedFile& file) {
    const auto begin = reinterpret_cast<std::uintptr_t>(file.bytes().data());
    return tensor.address() >= begin && tensor.address() < begin + file.bytes().size();
  };
  return is_in(*bytes_) || std::ranges::any_of(external_, [&](const auto& file) { return is_in(*file.second); });
}

void ModelFile::release_pages() const {
  bytes_->release_pages();
  for (const auto& file : external_) file.second->release_pages();
}

}  // namespace tenon::onnx
