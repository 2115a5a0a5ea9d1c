// SPDX-License-Identifier: Apache-2.0
#include "loader/elf.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "loader/regular_file.h"

namespace tenon::loader {
namespace {

/// Reads a file by position; nothing beyond its end.
class Bytes {
 public:
  explicit Bytes(const std::filesystem::path& file) : stream_(open_regular(file)) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    size_ = error ? 0 : size;
  }
  std::uint64_t size() const { return size_; }

  template <class T>
  std::optional<T> at(std::uint64_t position) {
    T value{};
    if (!read(position, &value, sizeof value)) return std::nullopt;
    return value;
  }
  /// Nothing for a text of more than `max_length` bytes.
  std::optional<std::string> text_at(std::uint64_t position, std::uint64_t max_length) {
    if (position >= size_) return std::nullopt;
    std::string text(static_cast<std::size_t>(std::min(max_length + 1, size_ - position)), '\0');
    if (!read(position, text.data(), text.size())) return std::nullopt;
    const std::size_t end = text.find('\0');
    if (end == std::string::npos) return std::nullopt;
    text.resize(end);
    return text;
  }
  bool holds(std::uint64_t position, std::uint64_t length) const { return position <= size_ && length <= size_ - position; }

 private:
  bool read(std::uint64_t position, void* out, std::uint64_t length) {
    if (!holds(position, length)) return false;
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(position));
    return static_cast<bool>(stream_.read(static_cast<char*>(out), static_cast<std::streamsize>(length)));
  }

  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

/// The end of a part of a file: 0 for an empty part, UINT64_MAX on overflow.
std::uint64_t end_of(std::uint64_t begin, std::uint64_t size) {
  if (size == 0) return 0;
  return begin > UINT64_MAX - size ? UINT64_MAX : begin + size;
}

Elf damaged(Elf elf, std::string fault) {
  elf.kind = Elf::Kind::damaged;
  elf.fault = std::move(fault);
  return elf;
}

std::vector<std::string> split_run_path(const std::string& text, const std::filesystem::path& file) {
  const std::string origin = file.parent_path().string();
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
std::vector<Elf::NeededVersion> read_needed_versions(Bytes& bytes, const Entries& table, std::uint64_t strings) {
  std::vector<Elf::NeededVersion> versions;
  if (!table.position) return versions;
  std::uint64_t at = *table.position, read = 0;
  for (std::uint64_t i = 0; i < table.count && read < max_versions; ++i, ++read) {
    const auto file = bytes.at<Elf64_Verneed>(at);
    if (!file) break;
    const std::string library = bytes.text_at(strings + file->vn_file, max_version_length).value_or("");
    std::uint64_t entry = at + file->vn_aux;
    for (std::uint16_t k = 0; k < file->vn_cnt && read < max_versions; ++k, ++read) {
      const auto version = bytes.at<Elf64_Vernaux>(entry);
      if (!version) return versions;
      if ((version->vna_flags & VER_FLG_WEAK) == 0)
        versions.push_back({library, bytes.text_at(strings + version->vna_name, max_version_length).value_or("")});
      if (version->vna_next == 0) break;
      entry += version->vna_next;
    }
    if (file->vn_next == 0) break;
    at += file->vn_next;
  }
  return versions;
}

/// The symbol versions that a file offers.
std::vector<std::string> read_defined_versions(Bytes& bytes, const Entries& table, std::uint64_t strings) {
  std::vector<std::string> versions;
  if (!table.position) return versions;
  std::uint64_t at = *table.position;
  for (std::uint64_t i = 0; i < std::min(table.count, max_versions); ++i) {
    const auto definition = bytes.at<Elf64_Verdef>(at);
    if (!definition) break;
    const auto name = bytes.at<Elf64_Verdaux>(at + definition->vd_aux);
    if (!name) break;
    // The base definition is the library's own name.
    if ((definition->vd_flags & VER_FLG_BASE) == 0)
      versions.push_back(bytes.text_at(strings + name->vda_name, max_version_length).value_or(""));
    if (definition->vd_next == 0) break;
    at += definition->vd_next;
  }
  return versions;
}

/// Fills in the contents of the dynamic section.
Elf read_dynamic(Elf elf, Bytes& bytes, const std::vector<Elf64_Phdr>& segments, const std::filesystem::path& file) {
  // Addresses in the dynamic section are those of the mapped image.
  const auto position_of = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return std::nullopt;
  };
  std::vector<std::uint64_t> needed;
  std::optional<std::uint64_t> strings, rpath, runpath;
  Entries needed_versions, defined_versions;
  // Of several dynamic sections the dynamic linker uses the last.
  const auto dynamic = std::find_if(segments.rbegin(), segments.rend(), [](const Elf64_Phdr& s) { return s.p_type == PT_DYNAMIC; });
  if (dynamic == segments.rend()) {
    elf.kind = Elf::Kind::other_kind;
    elf.fault = "a static executable";
    return elf;
  }
  for (std::uint64_t i = 0; i < dynamic->p_filesz / sizeof(Elf64_Dyn); ++i) {
    const auto entry = bytes.at<Elf64_Dyn>(dynamic->p_offset + i * sizeof(Elf64_Dyn));
    if (!entry) return damaged(std::move(elf), "its dynamic section reaches beyond the end of the file");
    if (entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_NEEDED) needed.push_back(entry->d_un.d_val);
    if (entry->d_tag == DT_STRTAB) strings = position_of(entry->d_un.d_ptr);
    if (entry->d_tag == DT_RPATH) rpath = entry->d_un.d_val;
    if (entry->d_tag == DT_RUNPATH) runpath = entry->d_un.d_val;
    if (entry->d_tag == DT_VERNEED) needed_versions.position = position_of(entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERNEEDNUM) needed_versions.count = entry->d_un.d_val;
    if (entry->d_tag == DT_VERDEF) defined_versions.position = position_of(entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERDEFNUM) defined_versions.count = entry->d_un.d_val;
  }
  if (!strings) return damaged(std::move(elf), "its dynamic section has no string table");
  // Many entries may name the same long text, so their total size is bounded.
  std::uint64_t left = max_needed_bytes;
  for (const std::uint64_t offset : needed) {
    const auto name = bytes.text_at(*strings + offset, left);
    if (!name) {
      return damaged(std::move(elf),
                     fmt::format("a name in its dynamic section lies beyond the end of the file, or its names take more than {} bytes",
                                 max_needed_bytes));
    }
    left -= name->size();
    elf.needed.push_back(*name);
  }
  // The dynamic linker reads DT_RPATH only where there is no DT_RUNPATH.
  elf.run_path_is_inherited = rpath && !runpath;
  if (const auto offset = runpath ? runpath : rpath) {
    const auto text = bytes.text_at(*strings + *offset, max_needed_bytes);
    if (text) elf.run_path = split_run_path(*text, file);
  }
  elf.needed_versions = read_needed_versions(bytes, needed_versions, *strings);
  elf.defined_versions = read_defined_versions(bytes, defined_versions, *strings);
  return elf;
}

}  // namespace

std::uint16_t own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#else
#error "add this machine's EM_* constant of <elf.h> to own_machine()"
#endif
}

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_386:
      return "x86";
    case EM_X86_64:
      return "x86_64";
    case EM_ARM:
      return "arm";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "powerpc64";
    case EM_S390:
      return "s390";
    default:
      return fmt::format("machine {}", machine);
  }
}

Elf read_elf(const std::filesystem::path& file) {
  Elf elf;
  Bytes bytes(file);
  if (bytes.size() == 0) {
    elf.kind = Elf::Kind::empty;
    return elf;
  }
  unsigned char ident[EI_NIDENT] = {};
  for (std::uint64_t i = 0; i < EI_NIDENT; ++i) ident[i] = bytes.at<unsigned char>(i).value_or(0);
  if (std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
    elf.kind = ident[0] == 'M' && ident[1] == 'Z' ? Elf::Kind::windows_library : Elf::Kind::not_elf;
    return elf;
  }
  elf.is_64_bit = ident[EI_CLASS] == ELFCLASS64;
  elf.is_little_endian = ident[EI_DATA] == ELFDATA2LSB;
  elf.kind = Elf::Kind::shared_object;
  // e_machine lies at the same place in both classes; its bytes are in the file's order.
  const unsigned char low = bytes.at<unsigned char>(18).value_or(0), high = bytes.at<unsigned char>(19).value_or(0);
  elf.machine = static_cast<std::uint16_t>(elf.is_little_endian ? low | high << 8 : high | low << 8);
  if (!elf.is_64_bit || !elf.is_little_endian || elf.machine != own_machine()) return elf;

  const auto header = bytes.at<Elf64_Ehdr>(0);
  if (!header) return damaged(std::move(elf), fmt::format("it ends inside its header: {} bytes", bytes.size()));
  if (header->e_type != ET_DYN) {
    elf.kind = Elf::Kind::other_kind;
    elf.fault = header->e_type == ET_EXEC ? "an executable" : header->e_type == ET_REL ? "an object file" : "a core dump";
    return elf;
  }
  std::vector<Elf64_Phdr> segments;
  std::uint64_t promised = 0;
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = bytes.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return damaged(std::move(elf), fmt::format("it ends inside its program headers: {} bytes", bytes.size()));
    promised = std::max(promised, end_of(segment->p_offset, segment->p_filesz));
    segments.push_back(*segment);
  }
  // The section headers come last: a copy that was cut short lacks them even where its segments are whole.
  promised = std::max(promised, end_of(header->e_shoff, std::uint64_t{header->e_shnum} * header->e_shentsize));
  // Opening a file that ends before its segments do kills the process with SIGBUS: so this is checked first.
  if (promised > bytes.size()) {
    return damaged(std::move(elf), fmt::format("it is truncated: its headers describe {} bytes, the file has {}", promised, bytes.size()));
  }
  return read_dynamic(std::move(elf), bytes, segments, file);
}

}  // namespace tenon::loader
