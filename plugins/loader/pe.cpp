// SPDX-License-Identifier: Apache-2.0
#include "loader/pe_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "loader/image_bytes.h"

namespace tenon::loader {
namespace {

Machine machine_of(std::uint16_t code) {
  switch (code) {
    case pe::machine_386:
      return Machine::x86;
    case pe::machine_x86_64:
      return Machine::x86_64;
    case pe::machine_arm:
      return Machine::arm;
    case pe::machine_aarch64:
      return Machine::aarch64;
    case pe::machine_riscv64:
      return Machine::riscv;
    default:
      return Machine::other;
  }
}

/// The headers of a file for the machine that this code runs on.
struct Headers {
  std::uint64_t optional_header = 0;  ///< its position
  std::uint32_t directory_count = 0;
  std::uint32_t headers_size = 0;
  std::vector<pe::Section> sections;
};

std::optional<pe::FileHeader> file_header(ImageBytes& bytes, std::uint64_t& out_position) {
  const auto offset = bytes.at<std::uint32_t>(pe::header_offset_at);
  if (!offset || bytes.at<std::uint32_t>(*offset) != pe::signature) return std::nullopt;
  out_position = std::uint64_t{*offset} + sizeof pe::signature;
  return bytes.at<pe::FileHeader>(out_position);
}

/// Nothing if the file ends before they do.
std::optional<Headers> read_headers(ImageBytes& bytes, const pe::FileHeader& header, std::uint64_t position) {
  Headers headers;
  headers.optional_header = position + sizeof header;
  const auto headers_size = bytes.at<std::uint32_t>(headers.optional_header + pe::headers_size_at);
  const auto directory_count = bytes.at<std::uint32_t>(headers.optional_header + pe::directory_count_at);
  if (!headers_size || !directory_count) return std::nullopt;
  headers.headers_size = *headers_size;
  headers.directory_count = *directory_count;
  const std::uint64_t table = headers.optional_header + header.optional_header_size;
  for (std::uint64_t i = 0; i < header.section_count; ++i) {
    const auto section = bytes.at<pe::Section>(table + i * sizeof(pe::Section));
    if (!section) return std::nullopt;
    headers.sections.push_back(*section);
  }
  return headers;
}

/// Addresses are those of the mapped image.
std::optional<std::uint64_t> position_of(const Headers& headers, std::uint64_t address) {
  if (address < headers.headers_size) return address;
  for (const pe::Section& section : headers.sections) {
    if (section.position == 0) continue;  // it has no bytes in the file
    if (address >= section.address && address - section.address < section.file_size) return section.position + (address - section.address);
  }
  return std::nullopt;
}

/// Nothing if the file has none.
std::optional<pe::Directory> directory(ImageBytes& bytes, const Headers& headers, std::uint32_t index) {
  if (index >= headers.directory_count) return std::nullopt;
  const auto found = bytes.at<pe::Directory>(headers.optional_header + pe::directories_at + std::uint64_t{index} * sizeof(pe::Directory));
  return found && found->address != 0 ? found : std::nullopt;
}

/// The entries of a table of imports, up to its end. Returns false if it reaches beyond the end of the file.
template <class Entry>
bool read_entries(ImageBytes& bytes, const Headers& headers, std::uint32_t index, std::vector<Entry>& out_entries) {
  const auto table = directory(bytes, headers, index);
  if (!table) return true;
  constexpr std::uint64_t max_entries = 1 << 16;
  for (std::uint64_t i = 0; i < max_entries; ++i) {
    const auto position = position_of(headers, table->address + i * sizeof(Entry));
    const auto entry = position ? bytes.at<Entry>(*position) : std::nullopt;
    if (!entry) return false;
    if (entry->library == 0) return true;
    out_entries.push_back(*entry);
  }
  return false;
}

/// Appends the names of the libraries of a table of imports. Returns false if one lies beyond the end of the file, or if they take more
/// than `left` bytes.
template <class Entry>
bool read_libraries(ImageBytes& bytes, const Headers& headers, std::uint32_t index, std::uint64_t& left,
                    std::vector<std::string>& out_names) {
  std::vector<Entry> entries;
  if (!read_entries(bytes, headers, index, entries)) return false;
  for (const Entry& entry : entries) {
    const auto position = position_of(headers, entry.library);
    const auto name = position ? bytes.text_at(*position, left) : std::nullopt;
    if (!name) return false;
    left -= name->size();
    out_names.push_back(*name);
  }
  return true;
}

/// The headers of a whole DLL for this machine.
std::optional<Headers> headers_of_own_dll(ImageBytes& bytes) {
  std::uint64_t position = 0;
  const auto header = file_header(bytes, position);
  if (!header || machine_of(header->machine) != own_machine()) return std::nullopt;
  if (bytes.at<std::uint16_t>(position + sizeof *header) != pe::magic_64) return std::nullopt;
  return read_headers(bytes, *header, position);
}

}  // namespace

BinaryImage read_pe(ImageBytes& bytes) {
  BinaryImage image;
  image.format = BinaryImage::Format::pe;
  image.kind = BinaryImage::Kind::shared_library;
  image.is_little_endian = true;
  std::uint64_t position = 0;
  const auto header = file_header(bytes, position);
  if (!header) return damaged(std::move(image), fmt::format("it ends inside its headers, or has none of a DLL: {} bytes", bytes.size()));
  image.machine_code = header->machine;
  image.machine = machine_of(header->machine);
  const std::uint16_t magic = bytes.at<std::uint16_t>(position + sizeof *header).value_or(0);
  image.is_64_bit = magic == pe::magic_64;
  if ((header->characteristics & pe::is_dll) == 0) {
    image.kind = BinaryImage::Kind::other_kind;
    image.fault = (header->characteristics & pe::is_executable) != 0 ? "a program" : "an object file";
    return image;
  }
  if (!image.is_64_bit || image.machine != own_machine()) return image;

  const auto headers = read_headers(bytes, *header, position);
  if (!headers) return damaged(std::move(image), fmt::format("it ends inside its headers: {} bytes", bytes.size()));
  std::uint64_t promised = headers->headers_size;
  for (const pe::Section& section : headers->sections) {
    if (section.position != 0) promised = std::max(promised, end_of(section.position, section.file_size));
  }
  if (const auto certificates = directory(bytes, *headers, pe::directory_certificates)) {
    promised = std::max(promised, end_of(certificates->address, certificates->size));
  }
  if (promised > bytes.size()) {
    return damaged(std::move(image),
                   fmt::format("it is truncated: its headers describe {} bytes, the file has {}", promised, bytes.size()));
  }
  std::uint64_t left = max_needed_bytes;
  if (!read_libraries<pe::Import>(bytes, *headers, pe::directory_imports, left, image.needed) ||
      !read_libraries<pe::DelayedImport>(bytes, *headers, pe::directory_delayed_imports, left, image.delayed)) {
    return damaged(std::move(image),
                   fmt::format("its table of imports or a name in it lies beyond the end of the file, or its names take more "
                               "than {} bytes",
                               max_needed_bytes));
  }
  return image;
}

std::optional<std::vector<std::string>> exports_of_pe(ImageBytes& bytes) {
  const auto headers = headers_of_own_dll(bytes);
  if (!headers) return std::nullopt;
  std::vector<std::string> names;
  const auto table = directory(bytes, *headers, pe::directory_exports);
  if (!table) return names;
  const auto at = position_of(*headers, table->address);
  const auto exports = at ? bytes.at<pe::Exports>(*at) : std::nullopt;
  if (!exports || exports->name_count > max_symbols) return std::nullopt;
  std::uint64_t left = max_symbol_bytes;
  for (std::uint64_t i = 0; i < exports->name_count; ++i) {
    const auto entry = position_of(*headers, exports->names + i * sizeof(std::uint32_t));
    const auto address = entry ? bytes.at<std::uint32_t>(*entry) : std::nullopt;
    const auto position = address ? position_of(*headers, *address) : std::nullopt;
    const auto name = position ? bytes.text_at(*position, left) : std::nullopt;
    if (!name) return std::nullopt;
    left -= name->size();
    names.push_back(*name);
  }
  return names;
}

std::vector<ImportedSymbol> imports_of_pe(ImageBytes& bytes) {
  std::vector<ImportedSymbol> symbols;
  const auto headers = headers_of_own_dll(bytes);
  std::vector<pe::Import> entries;
  if (!headers || !read_entries(bytes, *headers, pe::directory_imports, entries)) return symbols;
  std::uint64_t left = max_symbol_bytes, read = 0;
  for (const pe::Import& entry : entries) {
    const auto at = position_of(*headers, entry.library);
    const auto library = at ? bytes.text_at(*at, max_needed_bytes) : std::nullopt;
    if (!library) return symbols;
    // The names are in the table of addresses, too, until the file is mapped.
    const std::uint64_t names = entry.names != 0 ? entry.names : entry.addresses;
    for (std::uint64_t i = 0; read < max_symbols; ++i, ++read) {
      const auto place = position_of(*headers, names + i * sizeof(std::uint64_t));
      const auto value = place ? bytes.at<std::uint64_t>(*place) : std::nullopt;
      if (!value || *value == 0) break;
      if ((*value & pe::by_ordinal) != 0) continue;
      const auto position = position_of(*headers, *value);
      const auto name = position ? bytes.text_at(*position + pe::hint_size, left) : std::nullopt;
      if (!name || left < name->size() + library->size()) return symbols;
      left -= name->size() + library->size();
      symbols.push_back({*library, *name});
    }
  }
  return symbols;
}

CRuntime c_runtime_of(const std::string& library) {
  const std::string name = lower_case(library);
  if (name == "msvcrt.dll") return CRuntime::msvcrt;
  if (name == "ucrtbase.dll" || name.starts_with("api-ms-win-crt-")) return CRuntime::universal;
  if (name == "ucrtbased.dll") return CRuntime::visual_c_debug;
  for (const char* family : {"vcruntime", "msvcp", "msvcr", "concrt"}) {
    // The version follows, and in debug variants the letter d: vcruntime140_1d.dll.
    if (!name.starts_with(family) || !name.ends_with(".dll")) continue;
    const std::string version = name.substr(std::string(family).size(), name.size() - std::string(family).size() - 4);
    if (version.empty() || version[0] < '0' || version[0] > '9') continue;
    return version.ends_with('d') ? CRuntime::visual_c_debug : CRuntime::visual_c;
  }
  return CRuntime::none;
}

std::string c_runtimes_of(const BinaryImage& image) {
  if (image.format != BinaryImage::Format::pe) return {};
  std::set<std::string> names;
  for (const auto* libraries : {&image.needed, &image.delayed}) {
    for (const std::string& library : *libraries) {
      const CRuntime runtime = c_runtime_of(library);
      if (runtime != CRuntime::none) names.insert(runtime == CRuntime::universal ? "ucrtbase.dll" : lower_case(library));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string lower_case(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace tenon::loader
