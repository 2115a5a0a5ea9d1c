// SPDX-License-Identifier: Apache-2.0
// loader/elf_format.h - the structures of 64-bit ELF files, since <elf.h> is not on every system.
// Source: Tool Interface Standard, ELF specification 1.2; System V ABI, gABI 4.2; Linux Standard Base 5.0, "Symbol Versioning".
#pragma once

#include <cstdint>

namespace tenon::loader::elf {

constexpr unsigned class_at = 4, data_at = 5, ident_size = 16;  ///< positions in the identification
constexpr unsigned char class_64 = 2, data_little_endian = 1;

struct Header {
  unsigned char ident[ident_size];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_headers, section_headers;
  std::uint32_t flags;
  std::uint16_t header_size, program_header_size, program_header_count, section_header_size, section_header_count, section_names;
};
static_assert(sizeof(Header) == 64);
constexpr std::uint16_t type_relocatable = 1, type_executable = 2, type_shared = 3;

struct Segment {
  std::uint32_t type, flags;
  std::uint64_t offset, address, physical_address, file_size, memory_size, alignment;
};
static_assert(sizeof(Segment) == 56);
constexpr std::uint32_t segment_load = 1, segment_dynamic = 2;

struct Dynamic {
  std::int64_t tag;
  std::uint64_t value;
};
static_assert(sizeof(Dynamic) == 16);
constexpr std::int64_t tag_end = 0, tag_needed = 1, tag_strings = 5, tag_rpath = 15, tag_runpath = 29;
constexpr std::int64_t tag_defined_versions = 0x6ffffffc, tag_defined_version_count = 0x6ffffffd;
constexpr std::int64_t tag_needed_versions = 0x6ffffffe, tag_needed_version_count = 0x6fffffff;

struct NeededFile {
  std::uint16_t version, count;
  std::uint32_t file, versions, next;
};
static_assert(sizeof(NeededFile) == 16);
struct NeededVersion {
  std::uint32_t hash;
  std::uint16_t flags, other;
  std::uint32_t name, next;
};
static_assert(sizeof(NeededVersion) == 16);
struct DefinedVersion {
  std::uint16_t version, flags, index, count;
  std::uint32_t hash, names, next;
};
static_assert(sizeof(DefinedVersion) == 20);
struct DefinedName {
  std::uint32_t name, next;
};
static_assert(sizeof(DefinedName) == 8);
constexpr std::uint16_t version_base = 1, version_weak = 2;

struct Section {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, size;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_size;
};
static_assert(sizeof(Section) == 64);
constexpr std::uint32_t section_dynamic_symbols = 11;

struct Symbol {
  std::uint32_t name;
  unsigned char info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
static_assert(sizeof(Symbol) == 24);
constexpr unsigned binding_local = 0, visibility_default = 0, visibility_protected = 3;
constexpr std::uint16_t section_undefined = 0;

constexpr std::uint16_t machine_386 = 3, machine_powerpc64 = 21, machine_s390 = 22, machine_arm = 40, machine_x86_64 = 62,
                        machine_aarch64 = 183, machine_riscv = 243;

}  // namespace tenon::loader::elf
