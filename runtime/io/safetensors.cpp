// SPDX-License-Identifier: Apache-2.0
// io/safetensors.cpp - a file of named tensors: u64 header length (little-endian), JSON header, data.
#include <tenon/safetensors.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/input_file.h"
#include "io/lfs_pointer.h"
#include "io/safetensors_file.h"
#include "io/safetensors_header.h"
#include "platform/file.h"
#include "text/counted.h"

namespace tenon {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and is copied as it is");

/// Bools other than 0 and 1 would be undefined behaviour in kernels.
void check_bools(const std::string& path, const io::TensorEntry& entry, const Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.raw());
  const auto* wrong = std::find_if(bytes, bytes + tensor.count(), [](std::uint8_t byte) { return byte > 1; });
  if (wrong != bytes + tensor.count()) {
    throw Error(path + ": tensor " + io::shown_name(entry.name) + ": element " + std::to_string(wrong - bytes) + " of BOOL is " +
                std::to_string(*wrong) + ", expected 0 or 1");
  }
}

void check_names(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::set<std::string> seen;
  for (const auto& [name, tensor] : tensors) {
    const std::string what = path + ": cannot be written: tensor " + io::shown_name(name);
    if (name.empty() || name == "__metadata__") throw Error(what + ": the format does not allow this name; choose another");
    if (!seen.insert(name).second) throw Error(what + " is given twice");
    if (!tensor.defined()) throw Error(what + " is undefined");
    if (!io::safetensors_name_of(tensor.dtype())) {
      throw Error(Status::unsupported,
                  what + ": the format has no dtype for " + tensor.str() + "; save real and imaginary parts separately");
    }
  }
}

/// The length that is written before a header, checked against the size of the file.
std::uint64_t expect_header_fits(const std::string& path, std::uint64_t header_bytes, std::uint64_t file_bytes) {
  const std::uint64_t rest = file_bytes - sizeof header_bytes;
  if (header_bytes <= io::max_header_bytes && header_bytes <= rest) return rest - header_bytes;
  // A pointer of Git LFS is text of fewer than 1024 bytes, here with its first 8 as a length.
  const std::string_view begin(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  if (file_bytes < 1024 && io::lfs_pointer_prefix.starts_with(begin))
    throw Error(fmt::format("{}: expected a safetensors file, {}", path, io::got_lfs_pointer));
  throw Error(path + ": expected a header of at most " + std::to_string(std::min(io::max_header_bytes, rest)) + " bytes, got a length of " +
              std::to_string(header_bytes) + "; the file is truncated or not a safetensors file");
}

void expect_length(const std::string& path, std::uint64_t file_bytes) {
  if (file_bytes >= sizeof(std::uint64_t)) return;
  throw Error(path + ": expected a safetensors file of at least 8 bytes, got " + std::to_string(file_bytes));
}

/// The indices of tensors in the order of their data.
std::vector<std::size_t> by_offset(const io::SafetensorsHeader& header) {
  std::vector<std::size_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(header.tensors[i].begin, header.tensors[i].end); });
  return order;
}

}  // namespace

const Tensor* Safetensors::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

io::FileChecksum io::write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                                       const std::map<std::string, std::string>& metadata) {
  check_names(path, tensors);
  // Wide elements first, so that each tensor is aligned, which readers that map the file rely on.
  std::vector<std::size_t> by_width(tensors.size());
  for (std::size_t i = 0; i < by_width.size(); ++i) by_width[i] = i;
  std::stable_sort(by_width.begin(), by_width.end(),
                   [&](std::size_t a, std::size_t b) { return size_of(tensors[a].tensor.dtype()) > size_of(tensors[b].tensor.dtype()); });

  io::SafetensorsHeader header;
  header.metadata = metadata;
  for (const auto& [name, tensor] : tensors) header.tensors.push_back({name, tensor.dtype(), tensor.shape(), 0, 0});
  std::uint64_t end = 0;
  for (const std::size_t i : by_width) {
    header.tensors[i].begin = end;
    end += static_cast<std::uint64_t>(tensors[i].tensor.size_bytes());
    header.tensors[i].end = end;
  }
  const std::string text = io::write_safetensors_header(path, header);
  if (text.size() > io::max_header_bytes) {
    throw Error(path + ": cannot be written: names and metadata take " + std::to_string(text.size()) + " bytes, expected at most " +
                std::to_string(io::max_header_bytes));
  }

  io::AtomicFile file(path);
  FileChecksum written;
  written.has_parts = true;
  const auto write = [&](const void* bytes, std::uint64_t count, Crc32 checksum = {}) {
    file.write(bytes, count);
    checksum.add(bytes, count);
    written.size_bytes += count;
    return checksum;
  };
  const std::uint64_t header_bytes = text.size();
  written.header_crc32 = write(text.data(), text.size(), write(&header_bytes, sizeof header_bytes)).value();
  for (const std::size_t i : by_width) {
    const Tensor& tensor = tensors[i].tensor;
    const Tensor host = tensor.on_host() && tensor.is_dense() ? tensor : tensor.to_host();
    written.tensors.push_back(write(host.raw(), static_cast<std::uint64_t>(host.size_bytes())).value());
  }
  file.commit();
  return written;
}

void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::write_safetensors(path, tensors, metadata);
}

Safetensors load_safetensors(const std::string& path) {
  const io::OpenFile file = io::open_for_reading(path);
  const auto read = [&](void* out_bytes, std::uint64_t size_bytes) { io::read_exactly(file.file, path, out_bytes, size_bytes); };
  expect_length(path, file.size_bytes);
  std::uint64_t header_bytes = 0;
  read(&header_bytes, sizeof header_bytes);
  const std::uint64_t data_bytes = expect_header_fits(path, header_bytes, file.size_bytes);
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  read(text.data(), header_bytes);
  const io::SafetensorsHeader header = io::parse_safetensors_header(path, text, data_bytes);

  Safetensors result;
  result.metadata = header.metadata;
  for (const io::TensorEntry& entry : header.tensors) result.tensors.push_back({entry.name, Tensor::empty(entry.dtype, entry.shape)});
  for (const std::size_t i : by_offset(header)) {  // the entries cover the data, so this reads sequentially
    Tensor& tensor = result.tensors[i].tensor;
    read(tensor.raw(), static_cast<std::uint64_t>(tensor.size_bytes()));
    check_bools(path, header.tensors[i], tensor);
  }
  return result;
}

namespace io {
namespace {

void expect_checksum(const std::string& what, std::uint32_t expected, std::uint32_t got) {
  if (got != expected) throw Error(fmt::format("{}: expected content of CRC-32 {:08x}, got {:08x}", what, expected, got));
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path, FileChecksum expected)
    : path_(std::move(path)), expected_(std::move(expected)), file_(open_for_reading(path_)) {
  if (file_.size_bytes != expected_.size_bytes)
    throw Error(fmt::format("{}: damaged: expected {} bytes, got {}", path_, expected_.size_bytes, file_.size_bytes));
  expect_length(path_, file_.size_bytes);
  std::uint64_t header_bytes = 0;
  begin_ = read_bytes(&header_bytes, sizeof header_bytes, {});
  const std::uint64_t data_bytes = expect_header_fits(path_, header_bytes, file_.size_bytes);
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  begin_ = read_bytes(text.data(), header_bytes, begin_);
  if (expected_.has_parts) expect_checksum(path_ + ": damaged: its header", expected_.header_crc32, begin_.value());
  header_ = parse_safetensors_header(path_, text, data_bytes);
  by_offset_ = by_offset(header_);
  data_begin_ = position_;
  if (expected_.has_parts && expected_.tensors.size() != by_offset_.size()) {
    throw Error(fmt::format("{}: damaged: expected {}, got {}", path_, counted(expected_.tensors.size(), "tensor"), by_offset_.size()));
  }
}

/// Continues at the file's position; returns the checksum with these bytes added.
Crc32 SafetensorsFile::read_bytes(void* out_bytes, std::uint64_t size_bytes, Crc32 checksum) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 18;  // still in the cache when the checksum reads it
  auto* to = static_cast<std::byte*>(out_bytes);
  for (std::uint64_t done = 0; done < size_bytes;) {
    const std::uint64_t part = std::min(piece, size_bytes - done);
    read_exactly(file_.file, path_, to + done, part);
    checksum.add(to + done, part);
    done += part;
  }
  position_ += size_bytes;
  read_size_bytes_ += size_bytes;
  return checksum;
}

/// Reads and checks the tensor that is `in_order` in the data.
void SafetensorsFile::read_tensor(std::size_t in_order, Tensor& out_tensor) {
  const TensorEntry& entry = header_.tensors[by_offset_[in_order]];
  if (const std::uint64_t begin = data_begin_ + entry.begin; begin != position_) {
    if (const std::error_code error = file_.file.seek(begin)) throw Error(path_ + ": cannot be read: " + platform::message_of(error));
    position_ = begin;
  }
  const Crc32 checksum = read_bytes(out_tensor.raw(), entry.end - entry.begin, {});
  expect_checksum(path_ + ": damaged: tensor " + shown_name(entry.name), expected_.tensors[in_order], checksum.value());
  check_bools(path_, entry, out_tensor);
}

std::vector<NamedTensor> SafetensorsFile::read(const std::function<bool(const std::string& name)>& is_requested) {
  std::vector<NamedTensor> tensors;
  for (const TensorEntry& entry : header_.tensors)
    tensors.push_back({entry.name, is_requested(entry.name) || !expected_.has_parts ? Tensor::empty(entry.dtype, entry.shape) : Tensor()});
  if (expected_.has_parts) {
    for (std::size_t k = 0; k < by_offset_.size(); ++k) {
      if (Tensor& tensor = tensors[by_offset_[k]].tensor; tensor.defined()) read_tensor(k, tensor);
    }
  } else {
    if (const std::error_code error = file_.file.seek(data_begin_)) throw Error(path_ + ": cannot be read: " + platform::message_of(error));
    Crc32 checksum = begin_;
    for (const std::size_t i : by_offset_) {
      Tensor& tensor = tensors[i].tensor;
      checksum = read_bytes(tensor.raw(), static_cast<std::uint64_t>(tensor.size_bytes()), checksum);
    }
    expect_checksum(path_ + ": damaged", expected_.crc32, checksum.value());
    for (std::size_t i = 0; i < tensors.size(); ++i) check_bools(path_, header_.tensors[i], tensors[i].tensor);
  }
  std::erase_if(tensors, [&](const NamedTensor& t) { return !t.tensor.defined() || !is_requested(t.name); });
  return tensors;
}

void SafetensorsFile::check() {
  if (!expected_.has_parts) {
    static_cast<void>(read([](const std::string&) { return true; }));
    return;
  }
  for (std::size_t k = 0; k < by_offset_.size(); ++k) {  // one after the other: the file may be larger than the memory
    const TensorEntry& entry = header_.tensors[by_offset_[k]];
    Tensor tensor = Tensor::empty(entry.dtype, entry.shape);
    read_tensor(k, tensor);
  }
}

}  // namespace io

}  // namespace tenon
