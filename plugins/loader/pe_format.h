// SPDX-License-Identifier: Apache-2.0
// loader/pe_format.h - the structures of PE files, since <windows.h> is not on every system.
// Source: Microsoft, "PE Format", https://learn.microsoft.com/windows/win32/debug/pe-format
#pragma once

#include <cstdint>

namespace tenon::loader::pe {

constexpr std::uint64_t header_offset_at = 0x3c;  ///< of the DOS header: where the signature is
constexpr std::uint32_t signature = 0x00004550;   ///< "PE\0\0"

/// After the signature.
struct FileHeader {
  std::uint16_t machine, section_count;
  std::uint32_t time, symbols, symbol_count;
  std::uint16_t optional_header_size, characteristics;
};
static_assert(sizeof(FileHeader) == 20);
constexpr std::uint16_t is_executable = 0x0002, is_dll = 0x2000;
constexpr std::uint16_t machine_386 = 0x014c, machine_arm = 0x01c4, machine_x86_64 = 0x8664, machine_aarch64 = 0xaa64,
                        machine_riscv64 = 0x5064;

// Positions in the optional header, which follows the file header; those of the table of directories in 64-bit files.
constexpr std::uint16_t magic_32 = 0x10b, magic_64 = 0x20b;
constexpr std::uint64_t headers_size_at = 60, directory_count_at = 108, directories_at = 112;

struct Directory {
  std::uint32_t address, size;  ///< addresses are relative to the mapped image; that of the certificates is a position in the file
};
static_assert(sizeof(Directory) == 8);
constexpr std::uint32_t directory_exports = 0, directory_imports = 1, directory_certificates = 4, directory_delayed_imports = 13;

struct Section {
  char name[8];
  std::uint32_t memory_size, address, file_size, position, relocations, lines;
  std::uint16_t relocation_count, line_count;
  std::uint32_t characteristics;
};
static_assert(sizeof(Section) == 40);

struct Import {
  std::uint32_t names, time, forwarder, library, addresses;
};
static_assert(sizeof(Import) == 20);
constexpr std::uint64_t by_ordinal = std::uint64_t{1} << 63;  ///< of an entry of Import::names
constexpr std::uint64_t hint_size = 2;                        ///< before the name of an imported function

struct DelayedImport {
  std::uint32_t attributes, library, handle, addresses, names, bound, unload, time;
};
static_assert(sizeof(DelayedImport) == 32);

struct Exports {
  std::uint32_t flags, time;
  std::uint16_t major, minor;
  std::uint32_t library, ordinal_base, function_count, name_count, functions, names, ordinals;
};
static_assert(sizeof(Exports) == 40);

}  // namespace tenon::loader::pe
