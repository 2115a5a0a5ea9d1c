// SPDX-License-Identifier: Apache-2.0
// io/safetensors.cpp - a file of named tensors: u64 header length (little-endian), JSON header, data.
#include <tenon/safetensors.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/input_file.h"
#include "io/safetensors_file.h"
#include "io/safetensors_header.h"

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

/// Reads a file from its begin to its end, and adds what it reads to a checksum if one is expected.
class Reader {
 public:
  Reader(const std::string& path, const io::FileChecksum* expected) : path_(path), file_(io::open_for_reading(path)), expected_(expected) {
    if (expected != nullptr && file_.size_bytes != expected->size_bytes)
      throw Error(fmt::format("{}: damaged: expected {} bytes, got {}", path, expected->size_bytes, file_.size_bytes));
  }
  std::uint64_t size_bytes() const { return file_.size_bytes; }
  void read(void* out_bytes, std::uint64_t size_bytes) {
    constexpr std::uint64_t piece = std::uint64_t{1} << 18;  // still in the cache when the checksum reads it
    auto* to = static_cast<std::byte*>(out_bytes);
    for (std::uint64_t done = 0; done < size_bytes;) {
      const std::uint64_t part = expected_ == nullptr ? size_bytes : std::min(piece, size_bytes - done);
      io::read_exactly(file_.file, path_, to + done, part);
      if (expected_ != nullptr) checksum_.add(to + done, part);
      done += part;
    }
  }
  /// Called after the last byte.
  void check() const {
    if (expected_ != nullptr && checksum_.value() != expected_->crc32) {
      throw Error(fmt::format("{}: damaged: expected content of CRC-32 {:08x}, got {:08x}", path_, expected_->crc32, checksum_.value()));
    }
  }

 private:
  const std::string& path_;
  io::OpenFile file_;
  const io::FileChecksum* expected_;
  io::Crc32 checksum_;
};

Safetensors load(const std::string& path, const io::FileChecksum* expected) {
  Reader file(path, expected);
  std::uint64_t header_bytes = 0;
  if (file.size_bytes() < sizeof header_bytes) {
    throw Error(path + ": expected a safetensors file of at least 8 bytes, got " + std::to_string(file.size_bytes()));
  }
  file.read(&header_bytes, sizeof header_bytes);
  const std::uint64_t rest = file.size_bytes() - sizeof header_bytes;
  if (header_bytes > io::max_header_bytes || header_bytes > rest) {
    throw Error(path + ": expected a header of at most " + std::to_string(std::min(io::max_header_bytes, rest)) +
                " bytes, got a length of " + std::to_string(header_bytes) + "; the file is truncated or not a safetensors file");
  }
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  file.read(text.data(), header_bytes);
  const io::SafetensorsHeader header = io::parse_safetensors_header(path, text, rest - header_bytes);

  Safetensors result;
  result.metadata = header.metadata;
  std::vector<std::size_t> by_offset;
  for (const io::TensorEntry& entry : header.tensors) {
    by_offset.push_back(by_offset.size());
    result.tensors.push_back({entry.name, Tensor::empty(entry.dtype, entry.shape)});
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [&](std::size_t a, std::size_t b) { return header.tensors[a].begin < header.tensors[b].begin; });
  for (const std::size_t i : by_offset) {  // the entries cover the data, so this reads sequentially
    Tensor& tensor = result.tensors[i].tensor;
    file.read(tensor.raw(), static_cast<std::uint64_t>(tensor.size_bytes()));
  }
  file.check();
  for (const std::size_t i : by_offset) check_bools(path, header.tensors[i], result.tensors[i].tensor);
  return result;
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
  io::Crc32 checksum;
  std::uint64_t size_bytes = 0;
  const auto write = [&](const void* bytes, std::uint64_t count) {
    file.write(bytes, count);
    checksum.add(bytes, count);
    size_bytes += count;
  };
  const std::uint64_t header_bytes = text.size();
  write(&header_bytes, sizeof header_bytes);
  write(text.data(), text.size());
  for (const std::size_t i : by_width) {
    const Tensor& tensor = tensors[i].tensor;
    const Tensor host = tensor.on_host() && tensor.is_dense() ? tensor : tensor.to_host();
    write(host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  }
  file.commit();
  return {size_bytes, checksum.value()};
}

void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::write_safetensors(path, tensors, metadata);
}

Safetensors io::read_safetensors(const std::string& path, const FileChecksum& expected) {
  return load(path, &expected);
}

Safetensors load_safetensors(const std::string& path) {
  return load(path, nullptr);
}

}  // namespace tenon
