// SPDX-License-Identifier: Apache-2.0
// loader/elf.h - reads a shared object's headers without opening it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::loader {

/// Maximum size of all names in a dynamic section together. Real libraries need some hundred bytes.
inline constexpr std::uint64_t max_needed_bytes = 1u << 16;

/// The parts of an ELF file that decide whether it can be opened. Reading trusts nothing: a file that contradicts itself is `damaged`.
struct Elf {
  enum class Kind { shared_object, not_elf, empty, windows_library, other_kind, damaged };
  Kind kind = Kind::not_elf;
  std::string fault;  ///< other_kind: the kind; damaged: what is wrong
  bool is_64_bit = false;
  bool is_little_endian = false;
  std::uint16_t machine = 0;        ///< EM_*
  std::vector<std::string> needed;  ///< DT_NEEDED
  struct NeededVersion {
    std::string library;  ///< "libc.so.6"
    std::string version;  ///< "GLIBC_2.34"
  };
  std::vector<NeededVersion> needed_versions;  ///< DT_VERNEED, without weak ones
  std::vector<std::string> defined_versions;   ///< DT_VERDEF
  std::vector<std::string> run_path;           ///< DT_RUNPATH, or DT_RPATH if there is no other; $ORIGIN is resolved
  bool run_path_is_inherited = false;          ///< DT_RPATH: also used for the libraries it needs
};

/// Reads headers and dynamic section. The dynamic section is read only of files for the machine this code runs on.
Elf read_elf(const std::filesystem::path& file);

/// "x86_64", "aarch64", ..., "machine 243".
std::string machine_name(std::uint16_t machine);
/// EM_* of this code.
std::uint16_t own_machine();

}  // namespace tenon::loader
