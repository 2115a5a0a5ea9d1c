// SPDX-License-Identifier: Apache-2.0
#include "data/disk_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "core/log.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/input_file.h"
#include "io/safetensors_header.h"
#include "platform/folder.h"
#include "platform/mapping.h"
#include "platform/path.h"
#include "platform/system.h"

namespace tenon::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* format_version = "3";  ///< files of another version are created again
constexpr std::size_t content_digits = 32, other_digits = 16;
constexpr const char* ending = ".safetensors";

/// The last tensor of a file: the CRC-32 of all bytes before it.
constexpr const char* checksum_name = "crc32";
using Checksum = std::uint32_t;

const io::TensorEntry& entry_of(const std::string& path, const io::SafetensorsHeader& header, const char* name) {
  for (const io::TensorEntry& entry : header.tensors) {
    if (entry.name == name) return entry;
  }
  throw Error(path + ": expected a tensor '" + std::string(name) + "'");
}

CachedPart read(const std::string& path) {
  const io::OpenFile file = io::open_for_reading(path);
  std::uint64_t header_bytes = 0;
  if (file.size_bytes < sizeof header_bytes) throw Error(path + ": is truncated");
  std::error_code unmapped;
  const auto mapping = std::make_shared<platform::Mapping>(file.file, static_cast<std::size_t>(file.size_bytes), unmapped);
  if (unmapped) throw Error(path + ": cannot be mapped: " + platform::message_of(unmapped));
  std::memcpy(&header_bytes, mapping->address(), sizeof header_bytes);
  const std::uint64_t rest = file.size_bytes - sizeof header_bytes;
  if (header_bytes > std::min(io::max_header_bytes, rest)) throw Error(path + ": is truncated or damaged");
  const std::byte* text = mapping->address() + sizeof header_bytes;
  const io::SafetensorsHeader header = io::parse_safetensors_header(
      path, {reinterpret_cast<const char*>(text), static_cast<std::size_t>(header_bytes)}, rest - header_bytes);
  const auto tensor = [&](const char* name) {
    const io::TensorEntry& entry = entry_of(path, header, name);
    std::byte* at = mapping->address() + sizeof header_bytes + header_bytes + entry.begin;
    return Tensor::borrow(at, entry.dtype, entry.shape, mapping);
  };
  const auto value = [&](const char* key) {
    const auto found = header.metadata.find(key);
    return found == header.metadata.end() ? std::string() : found->second;
  };
  if (value("form") != format_version) {
    throw Error(path + ": expected cache format " + format_version + ", got '" + value("form") + "'");
  }
  if (entry_of(path, header, checksum_name).end != rest - header_bytes) throw Error(path + ": expected the checksum at its end");
  io::Crc32 found;
  Checksum expected = 0;
  found.add(mapping->address(), mapping->size_bytes() - sizeof expected);
  std::memcpy(&expected, mapping->address() + mapping->size_bytes() - sizeof expected, sizeof expected);
  if (found.value() != expected)
    throw Error(fmt::format("{}: damaged: expected content of CRC-32 {:08x}, got {:08x}", path, expected, found.value()));
  CachedPart part;
  part.metadata = header.metadata;
  ArrayOptions array;
  array.name = value("name");
  const Tensor x = tensor("x"), y = tensor("y");
  array.x_dtype = x.dtype();
  // Setting num_classes checks the labels again: a damaged label must not be used as an index.
  if (const std::string stated = value("num_classes"); !stated.empty() && y.dtype() == DType::i64 && y.shape().rank() == 1) {
    std::int64_t classes = 0;
    const auto [end, error] = std::from_chars(stated.data(), stated.data() + stated.size(), classes);
    if (error != std::errc() || end != stated.data() + stated.size())
      throw Error(path + ": expected num_classes to be an integer, got '" + stated + "'");
    array.num_classes = classes;
  }
  if (value("weighted") == "true") array.sample_weights = tensor("sample_weight");
  part.data = std::make_shared<const ArrayDataset>(x, y, array);
  return part;
}

/// The prefix "<label>-<place>-" of a file name, which identifies a data set independently of its content.
std::string origin_of(const std::string& name) {
  std::size_t end = name.size();
  for (int dashes = 0; dashes < 2 && end != std::string::npos && end > 0; ++dashes) end = name.rfind('-', end - 1);
  return end == std::string::npos ? name : name.substr(0, end + 1);
}

std::string content_of(const std::string& name) {
  return name.substr(origin_of(name).size(), content_digits);
}

}  // namespace

void ContentKey::add_word(std::uint64_t word) {
  low_ = (low_ ^ word) * 0x9fb21c651e98df25u;
  low_ ^= low_ >> 32;
  high_ = (high_ + word) * 0xd6e8feb86659fd93u;
  high_ ^= high_ >> 29;
}

void ContentKey::add(std::string_view bytes) {
  add_word(bytes.size());
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    add_word(word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  add_word(rest);
}

void ContentKey::add_file(const std::string& path) {
  const io::OpenFile file = io::open_for_reading(path);
  add(platform::text_of(platform::path_of(path).filename()));
  add_word(file.size_bytes);
  std::string piece(std::size_t{1} << 20, '\0');
  for (std::uint64_t left = file.size_bytes; left > 0;) {
    const std::uint64_t part = std::min<std::uint64_t>(left, piece.size());
    io::read_exactly(file.file, path, piece.data(), part);
    add({piece.data(), static_cast<std::size_t>(part)});
    left -= part;
  }
}

std::string ContentKey::str() const {
  return fmt::format("{:016x}{:016x}", low_, high_);
}

DiskCache::DiskCache(const std::string& folder) : folder_(folder) {
  std::error_code code;
  fs::create_directories(platform::path_of(folder_), code);
  if (code)
    throw Error(
        fmt::format("{}: the cache folder cannot be created: {}; set data.cache_directory to another folder", folder_, code.message()));
}

std::string DiskCache::folder_or_default(const std::string& folder) {
  if (!folder.empty()) return folder;
  const std::string base = platform::cache_folder();
  if (base.empty()) throw Error(fmt::format("cache: disk: {}; set data.cache_directory", platform::missing_cache_folder));
  return platform::text_of(platform::path_of(base) / "tenon" / "data");
}

std::string DiskCache::path_of(const std::string& label, const std::string& place, const ContentKey& content,
                               const ContentKey& options) const {
  ContentKey where;
  where.add(place);
  const std::string name =
      fmt::format("{}-{}-{}-{}{}", label, where.str().substr(0, 8), content.str(), options.str().substr(0, other_digits), ending);
  return platform::text_of(platform::path_of(folder_) / platform::path_of(name));
}

CachedPart DiskCache::open(const std::string& path) const {
  std::error_code ignored;
  if (!fs::exists(platform::path_of(path), ignored)) return {};
  try {
    return read(path);
  } catch (const std::exception& problem) {
    log::warning("{}; the cache file is created again", problem.what());
    return {};
  }
}

void DiskCache::store(const std::string& path, const Dataset& data, std::map<std::string, std::string> metadata) const {
  const std::int64_t count = data.size();
  const std::int64_t x_bytes = data.x_type().shape.count() * size_of(data.x_type().dtype);
  const std::int64_t y_bytes = data.y_type().shape.count() * size_of(data.y_type().dtype);
  const auto x_end = static_cast<std::uint64_t>(count * x_bytes), y_end = static_cast<std::uint64_t>(count * y_bytes);
  // The wider elements come first, so that both tensors are aligned.
  const bool x_first = size_of(data.x_type().dtype) >= size_of(data.y_type().dtype);
  io::SafetensorsHeader header;
  header.metadata = std::move(metadata);
  header.metadata["form"] = format_version;
  header.metadata["name"] = data.name();
  if (data.num_classes()) header.metadata["num_classes"] = std::to_string(*data.num_classes());
  const std::uint64_t x_begin = x_first ? 0 : y_end, y_begin = x_first ? x_end : 0;
  header.tensors.push_back({"x", data.x_type().dtype, data.x_type().shape.with_batch(count), x_begin, x_begin + x_end});
  header.tensors.push_back({"y", data.y_type().dtype, data.y_type().shape.with_batch(count), y_begin, y_begin + y_end});
  const Tensor weights = data.sample_weights();
  const std::uint64_t samples_end = x_end + y_end;
  const auto weights_bytes = weights.defined() ? static_cast<std::uint64_t>(weights.size_bytes()) : 0;
  if (weights.defined()) {
    header.metadata["weighted"] = "true";
    header.tensors.push_back({"sample_weight", weights.dtype(), weights.shape(), samples_end, samples_end + weights_bytes});
  }
  const std::uint64_t end = samples_end + weights_bytes;
  header.tensors.push_back({checksum_name, DType::u32, Shape{1}, end, end + sizeof(Checksum)});
  const std::string text = io::write_safetensors_header(path, header);

  io::AtomicFile file(path);
  io::Crc32 checksum;
  const auto write = [&](const void* bytes, std::uint64_t size_bytes) {
    file.write(bytes, size_bytes);
    checksum.add(bytes, size_bytes);
  };
  const std::uint64_t header_bytes = text.size();
  write(&header_bytes, sizeof header_bytes);
  write(text.data(), text.size());
  constexpr std::int64_t rows_at_once = 256;
  for (const bool write_x : {x_first, !x_first}) {
    std::vector<std::int64_t> indices;
    for (std::int64_t begin = 0; begin < count; begin += rows_at_once) {
      indices.resize(static_cast<std::size_t>(std::min(rows_at_once, count - begin)));
      std::iota(indices.begin(), indices.end(), begin);
      const auto rows = static_cast<std::int64_t>(indices.size());
      Tensor x = Tensor::empty(data.x_type().dtype, data.x_type().shape.with_batch(rows));
      Tensor y = Tensor::empty(data.y_type().dtype, data.y_type().shape.with_batch(rows));
      data.gather(indices, x, y);
      write(write_x ? x.raw() : y.raw(), static_cast<std::uint64_t>(rows * (write_x ? x_bytes : y_bytes)));
    }
  }
  if (weights.defined()) write(weights.raw(), weights_bytes);
  const Checksum value = checksum.value();
  file.write(&value, sizeof value);
  file.commit();

  std::error_code code;
  const std::string name = platform::text_of(platform::path_of(path).filename());
  for (const auto& [other, kind] : platform::entries_of(folder_, code)) {
    if (!other.ends_with(ending)) continue;  // another process may be writing it
    if (origin_of(other) != origin_of(name) || content_of(other) == content_of(name)) continue;
    fs::remove(platform::path_of(folder_) / platform::path_of(other), code);
  }
}

}  // namespace tenon::data
