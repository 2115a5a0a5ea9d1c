// SPDX-License-Identifier: Apache-2.0
// loader/image_bytes.h - the bytes of a library's file, for the readers of its formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "loader/image.h"

namespace tenon::loader {

/// Reads a file by position; nothing beyond its end.
class ImageBytes {
 public:
  explicit ImageBytes(const std::filesystem::path& file);
  std::uint64_t size() const { return size_; }

  template <class T>
  std::optional<T> at(std::uint64_t position) {
    T value{};
    if (!read(position, &value, sizeof value)) return std::nullopt;
    return value;
  }
  /// Nothing for a text of more than `max_length` bytes.
  std::optional<std::string> text_at(std::uint64_t position, std::uint64_t max_length);

 private:
  bool read(std::uint64_t position, void* out, std::uint64_t length);

  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

/// The end of a part of a file: 0 for an empty part, UINT64_MAX on overflow.
std::uint64_t end_of(std::uint64_t begin, std::uint64_t size);

/// The image, with kind `damaged` and what is wrong.
BinaryImage damaged(BinaryImage image, std::string fault);

/// Windows does not distinguish the case of a library's name, which is ASCII in practice.
std::string lower_case(std::string name);

// Of a file that begins as one of that format does.
BinaryImage read_elf(ImageBytes& bytes, const std::filesystem::path& file);
BinaryImage read_pe(ImageBytes& bytes);
std::optional<std::vector<std::string>> exports_of_elf(ImageBytes& bytes);
std::optional<std::vector<std::string>> exports_of_pe(ImageBytes& bytes);
std::vector<ImportedSymbol> imports_of_pe(ImageBytes& bytes);

}  // namespace tenon::loader
