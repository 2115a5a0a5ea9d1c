// SPDX-License-Identifier: Apache-2.0
#include "loader/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "loader/image_bytes.h"
#include "loader/regular_file.h"
#include "platform/conventions.h"

namespace tenon::loader {
namespace {

const char* name_of(Machine machine) {
  switch (machine) {
    case Machine::x86:
      return "x86";
    case Machine::x86_64:
      return "x86_64";
    case Machine::arm:
      return "arm";
    case Machine::aarch64:
      return "aarch64";
    case Machine::riscv:
      return "riscv";
    case Machine::powerpc64:
      return "powerpc64";
    case Machine::s390:
      return "s390";
    case Machine::other:
      break;
  }
  return "";
}

BinaryImage::Format format_of(ImageBytes& bytes) {
  const unsigned char first = bytes.at<unsigned char>(0).value_or(0), second = bytes.at<unsigned char>(1).value_or(0);
  const unsigned char third = bytes.at<unsigned char>(2).value_or(0), fourth = bytes.at<unsigned char>(3).value_or(0);
  if (first == 0x7f && second == 'E' && third == 'L' && fourth == 'F') return BinaryImage::Format::elf;
  return first == 'M' && second == 'Z' ? BinaryImage::Format::pe : BinaryImage::Format::none;
}

}  // namespace

ImageBytes::ImageBytes(const std::filesystem::path& file) : stream_(open_regular(file)) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  size_ = error ? 0 : size;
}

std::optional<std::string> ImageBytes::text_at(std::uint64_t position, std::uint64_t max_length) {
  constexpr std::uint64_t step = 64;  // most names are shorter
  std::string text;
  while (position < size_ && text.size() <= max_length) {
    const std::size_t before = text.size();
    text.resize(before + static_cast<std::size_t>(std::min({step, size_ - position, max_length + 1 - before})));
    if (!read(position, text.data() + before, text.size() - before)) return std::nullopt;
    if (const std::size_t end = text.find('\0', before); end != std::string::npos) {
      text.resize(end);
      return text;
    }
    position += text.size() - before;
  }
  return std::nullopt;
}

bool ImageBytes::read(std::uint64_t position, void* out, std::uint64_t length) {
  if (position > size_ || length > size_ - position) return false;
  stream_.clear();
  stream_.seekg(static_cast<std::streamoff>(position));
  return static_cast<bool>(stream_.read(static_cast<char*>(out), static_cast<std::streamsize>(length)));
}

std::uint64_t end_of(std::uint64_t begin, std::uint64_t size) {
  if (size == 0) return 0;
  return begin > UINT64_MAX - size ? UINT64_MAX : begin + size;
}

BinaryImage damaged(BinaryImage image, std::string fault) {
  image.kind = BinaryImage::Kind::damaged;
  image.fault = std::move(fault);
  return image;
}

BinaryImage read_image(const std::filesystem::path& file) {
  ImageBytes bytes(file);
  if (bytes.size() == 0) {
    BinaryImage image;
    image.kind = BinaryImage::Kind::empty;
    return image;
  }
  switch (format_of(bytes)) {
    case BinaryImage::Format::elf:
      return read_elf(bytes, file);
    case BinaryImage::Format::pe:
      return read_pe(bytes);
    case BinaryImage::Format::none:
      break;
  }
  return {};
}

bool is_for_own_machine(const BinaryImage& image) {
  const bool elf = platform::conventions().format == platform::BinaryFormat::elf;
  return image.kind == BinaryImage::Kind::shared_library && image.format == (elf ? BinaryImage::Format::elf : BinaryImage::Format::pe) &&
         image.is_64_bit && image.is_little_endian && image.machine == own_machine();
}

Machine own_machine() {
#if defined(__x86_64__) || defined(_M_X64)
  return Machine::x86_64;
#elif defined(__aarch64__) || defined(_M_ARM64)
  return Machine::aarch64;
#elif defined(__riscv)
  return Machine::riscv;
#elif defined(__powerpc64__)
  return Machine::powerpc64;
#else
#error "add this machine to Machine, and its codes to elf.cpp and pe.cpp"
#endif
}

std::string machine_name(const BinaryImage& image) {
  return image.machine == Machine::other ? fmt::format("machine {}", image.machine_code) : name_of(image.machine);
}

std::string own_machine_name() {
  return name_of(own_machine());
}

std::optional<std::vector<std::string>> exported_symbols(const std::filesystem::path& file) {
  ImageBytes bytes(file);
  switch (format_of(bytes)) {
    case BinaryImage::Format::elf:
      return exports_of_elf(bytes);
    case BinaryImage::Format::pe:
      return exports_of_pe(bytes);
    case BinaryImage::Format::none:
      break;
  }
  return std::nullopt;
}

std::vector<ImportedSymbol> imported_symbols(const std::filesystem::path& file) {
  ImageBytes bytes(file);
  return format_of(bytes) == BinaryImage::Format::pe ? imports_of_pe(bytes) : std::vector<ImportedSymbol>{};
}

}  // namespace tenon::loader
