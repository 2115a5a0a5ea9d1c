// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "loader/elf_format.h"
#include "loader/image_bytes.h"
#include "platform/path.h"

namespace tenon::loader {
namespace {

Machine machine_of(std::uint16_t code) {
  switch (code) {
    case elf::machine_386:
      return Machine::x86;
    case elf::machine_x86_64:
      return Machine::x86_64;
    case elf::machine_arm:
      return Machine::arm;
    case elf::machine_aarch64:
      return Machine::aarch64;
    case elf::machine_riscv:
      return Machine::riscv;
    case elf::machine_powerpc64:
      return Machine::powerpc64;
    case elf::machine_s390:
      return Machine::s390;
    default:
      return Machine::other;
  }
}

std::vector<std::string> split_run_path(const std::string& text, const std::filesystem::path& file) {
  const std::string origin = platform::text_of(file.parent_path());
  std::vector<std::string> folders;
  std::istringstream parts(text);
  for (std::string folder; std::getline(parts, folder, ':');) {
    for (const std::string token : {"${ORIGIN}", "$ORIGIN"}) {
      // The search continues after the replacement: a folder may be called $ORIGIN.
      for (std::size_t at = 0; (at = folder.find(token, at)) != std::string::npos; at += origin.size()) {
        folder.replace(at, token.size(), origin);
      }
    }
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

/// A table of the dynamic section: where it is, and how many entries it has.
struct Entries {
  std::optional<std::uint64_t> position;
  std::uint64_t count = 0;
};

/// Limits that no real library reaches. A crafted file could have one entry for each of its bytes, and each with as many parts.
constexpr std::uint64_t max_versions = 1 << 16, max_version_length = 256;

/// The symbol versions that a file needs from others. Of a truncated table the readable part is returned; opening the file will fail.
std::vector<BinaryImage::NeededVersion> read_needed_versions(ImageBytes& bytes, const Entries& table, std::uint64_t strings) {
  std::vector<BinaryImage::NeededVersion> versions;
  if (!table.position) return versions;
  std::uint64_t at = *table.position, read = 0;
  for (std::uint64_t i = 0; i < table.count && read < max_versions; ++i, ++read) {
    const auto file = bytes.at<elf::NeededFile>(at);
    if (!file) break;
    const std::string library = bytes.text_at(strings + file->file, max_version_length).value_or("");
    std::uint64_t entry = at + file->versions;
    for (std::uint16_t k = 0; k < file->count && read < max_versions; ++k, ++read) {
      const auto version = bytes.at<elf::NeededVersion>(entry);
      if (!version) return versions;
      if ((version->flags & elf::version_weak) == 0)
        versions.push_back({library, bytes.text_at(strings + version->name, max_version_length).value_or("")});
      if (version->next == 0) break;
      entry += version->next;
    }
    if (file->next == 0) break;
    at += file->next;
  }
  return versions;
}

/// The symbol versions that a file offers.
std::vector<std::string> read_defined_versions(ImageBytes& bytes, const Entries& table, std::uint64_t strings) {
  std::vector<std::string> versions;
  if (!table.position) return versions;
  std::uint64_t at = *table.position;
  for (std::uint64_t i = 0; i < std::min(table.count, max_versions); ++i) {
    const auto definition = bytes.at<elf::DefinedVersion>(at);
    if (!definition) break;
    const auto name = bytes.at<elf::DefinedName>(at + definition->names);
    if (!name) break;
    // The base definition is the library's own name.
    if ((definition->flags & elf::version_base) == 0)
      versions.push_back(bytes.text_at(strings + name->name, max_version_length).value_or(""));
    if (definition->next == 0) break;
    at += definition->next;
  }
  return versions;
}

/// Whether the structures of elf_format.h are those of the file.
bool is_readable(const BinaryImage& image) {
  return image.is_64_bit && image.is_little_endian && image.machine == own_machine();
}

/// Fills in the contents of the dynamic section.
BinaryImage read_dynamic(BinaryImage image, ImageBytes& bytes, const std::vector<elf::Segment>& segments,
                         const std::filesystem::path& file) {
  // Addresses in the dynamic section are those of the mapped image.
  const auto position_of = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
    for (const elf::Segment& segment : segments) {
      if (segment.type == elf::segment_load && address >= segment.address && address - segment.address < segment.file_size) {
        return segment.offset + (address - segment.address);
      }
    }
    return std::nullopt;
  };
  std::vector<std::uint64_t> needed;
  std::optional<std::uint64_t> strings, rpath, runpath;
  Entries needed_versions, defined_versions;
  // Of several dynamic sections the dynamic linker uses the last.
  const auto dynamic =
      std::find_if(segments.rbegin(), segments.rend(), [](const elf::Segment& s) { return s.type == elf::segment_dynamic; });
  if (dynamic == segments.rend()) {
    image.kind = BinaryImage::Kind::other_kind;
    image.fault = "a static executable";
    return image;
  }
  for (std::uint64_t i = 0; i < dynamic->file_size / sizeof(elf::Dynamic); ++i) {
    const auto entry = bytes.at<elf::Dynamic>(dynamic->offset + i * sizeof(elf::Dynamic));
    if (!entry) return damaged(std::move(image), "its dynamic section reaches beyond the end of the file");
    if (entry->tag == elf::tag_end) break;
    if (entry->tag == elf::tag_needed) needed.push_back(entry->value);
    if (entry->tag == elf::tag_strings) strings = position_of(entry->value);
    if (entry->tag == elf::tag_rpath) rpath = entry->value;
    if (entry->tag == elf::tag_runpath) runpath = entry->value;
    if (entry->tag == elf::tag_needed_versions) needed_versions.position = position_of(entry->value);
    if (entry->tag == elf::tag_needed_version_count) needed_versions.count = entry->value;
    if (entry->tag == elf::tag_defined_versions) defined_versions.position = position_of(entry->value);
    if (entry->tag == elf::tag_defined_version_count) defined_versions.count = entry->value;
  }
  if (!strings) return damaged(std::move(image), "its dynamic section has no string table");
  // Many entries may name the same long text, so their total size is bounded.
  std::uint64_t left = max_needed_bytes;
  for (const std::uint64_t offset : needed) {
    const auto name = bytes.text_at(*strings + offset, left);
    if (!name) {
      return damaged(std::move(image),
                     fmt::format("a name in its dynamic section lies beyond the end of the file, or its names take more than {} bytes",
                                 max_needed_bytes));
    }
    left -= name->size();
    image.needed.push_back(*name);
  }
  // The dynamic linker reads DT_RPATH only where there is no DT_RUNPATH.
  image.run_path_is_inherited = rpath && !runpath;
  if (const auto offset = runpath ? runpath : rpath) {
    const auto text = bytes.text_at(*strings + *offset, max_needed_bytes);
    if (text) image.run_path = split_run_path(*text, file);
  }
  image.needed_versions = read_needed_versions(bytes, needed_versions, *strings);
  image.defined_versions = read_defined_versions(bytes, defined_versions, *strings);
  return image;
}

}  // namespace

BinaryImage read_elf(ImageBytes& bytes, const std::filesystem::path& file) {
  BinaryImage image;
  image.format = BinaryImage::Format::elf;
  unsigned char ident[elf::ident_size] = {};
  for (std::uint64_t i = 0; i < elf::ident_size; ++i) ident[i] = bytes.at<unsigned char>(i).value_or(0);
  image.is_64_bit = ident[elf::class_at] == elf::class_64;
  image.is_little_endian = ident[elf::data_at] == elf::data_little_endian;
  image.kind = BinaryImage::Kind::shared_library;
  // The machine lies at the same place in both classes; its bytes are in the file's order.
  const unsigned char low = bytes.at<unsigned char>(18).value_or(0), high = bytes.at<unsigned char>(19).value_or(0);
  image.machine_code = static_cast<std::uint16_t>(image.is_little_endian ? low | high << 8 : high | low << 8);
  image.machine = machine_of(image.machine_code);
  if (!is_readable(image)) return image;

  const auto header = bytes.at<elf::Header>(0);
  if (!header) return damaged(std::move(image), fmt::format("it ends inside its header: {} bytes", bytes.size()));
  if (header->type != elf::type_shared) {
    image.kind = BinaryImage::Kind::other_kind;
    image.fault = header->type == elf::type_executable    ? "an executable"
                  : header->type == elf::type_relocatable ? "an object file"
                                                          : "a core dump";
    return image;
  }
  std::vector<elf::Segment> segments;
  std::uint64_t promised = 0;
  for (std::uint64_t i = 0; i < header->program_header_count; ++i) {
    const auto segment = bytes.at<elf::Segment>(header->program_headers + i * sizeof(elf::Segment));
    if (!segment) return damaged(std::move(image), fmt::format("it ends inside its program headers: {} bytes", bytes.size()));
    promised = std::max(promised, end_of(segment->offset, segment->file_size));
    segments.push_back(*segment);
  }
  // The section headers come last: a copy that was cut short lacks them even where its segments are whole.
  promised = std::max(promised, end_of(header->section_headers, std::uint64_t{header->section_header_count} * header->section_header_size));
  // Opening a file that ends before its segments do kills the process with SIGBUS: so this is checked first.
  if (promised > bytes.size()) {
    return damaged(std::move(image),
                   fmt::format("it is truncated: its headers describe {} bytes, the file has {}", promised, bytes.size()));
  }
  return read_dynamic(std::move(image), bytes, segments, file);
}

std::optional<std::vector<std::string>> exports_of_elf(ImageBytes& bytes) {
  std::uint64_t read = 0, left = max_symbol_bytes;
  const auto header = bytes.at<elf::Header>(0);
  if (!header || header->ident[elf::class_at] != elf::class_64 || header->ident[elf::data_at] != elf::data_little_endian)
    return std::nullopt;
  const auto section = [&](std::uint64_t i) { return bytes.at<elf::Section>(header->section_headers + i * sizeof(elf::Section)); };
  std::optional<std::vector<std::string>> names;
  for (std::uint64_t s = 0; s < header->section_header_count; ++s) {
    const auto table = section(s);
    if (!table) return std::nullopt;
    if (table->type != elf::section_dynamic_symbols) continue;
    const auto strings = section(table->link);
    if (!strings) return std::nullopt;
    if (!names) names.emplace();
    for (std::uint64_t i = 0; i < table->size / sizeof(elf::Symbol) && read < max_symbols; ++i, ++read) {
      const auto symbol = bytes.at<elf::Symbol>(table->offset + i * sizeof(elf::Symbol));
      if (!symbol) return std::nullopt;
      const unsigned binding = symbol->info >> 4, visibility = symbol->other & 3;
      const bool is_public =
          binding != elf::binding_local && (visibility == elf::visibility_default || visibility == elf::visibility_protected);
      if (!is_public || symbol->section == elf::section_undefined) continue;
      const auto name = bytes.text_at(strings->offset + symbol->name, left);
      if (!name) return std::nullopt;
      left -= name->size();
      names->push_back(*name);
    }
  }
  return names;
}

}  // namespace tenon::loader
