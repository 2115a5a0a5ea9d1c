// SPDX-License-Identifier: Apache-2.0
// loader/image.h - reads the headers of a library without opening it, on every system and of every system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tenon::loader {

/// Maximum size of all names that a file's headers refer to together. Real libraries need some hundred bytes for those of libraries.
inline constexpr std::uint64_t max_needed_bytes = 1u << 16;

/// The processor that code is for.
enum class Machine { other, x86, x86_64, arm, aarch64, riscv, powerpc64, s390 };

/// The parts of a file that decide whether it can be opened. Reading trusts nothing: a file that contradicts itself is `damaged`.
struct BinaryImage {
  enum class Format { none, elf, pe };
  enum class Kind { shared_library, other_kind, damaged, not_an_image, empty };
  Format format = Format::none;
  Kind kind = Kind::not_an_image;
  std::string fault;  ///< other_kind: the kind; damaged: what is wrong
  bool is_64_bit = false;
  bool is_little_endian = false;
  Machine machine = Machine::other;
  std::uint16_t machine_code = 0;  ///< as the file has it: EM_* or IMAGE_FILE_MACHINE_*

  // Only of files for the machine that this code runs on.
  std::vector<std::string> needed;  ///< DT_NEEDED; the imported DLLs, without those that are loaded at their first call
  // Only of ELF files.
  struct NeededVersion {
    std::string library;  ///< "libc.so.6"
    std::string version;  ///< "GLIBC_2.34"
  };
  std::vector<NeededVersion> needed_versions;  ///< DT_VERNEED, without weak ones
  std::vector<std::string> defined_versions;   ///< DT_VERDEF
  std::vector<std::string> run_path;           ///< DT_RUNPATH, or DT_RPATH if there is no other; $ORIGIN is resolved
  bool run_path_is_inherited = false;          ///< DT_RPATH: also used for the libraries it needs
  // Only of PE files.
  std::vector<std::string> delayed;  ///< DLLs that are loaded at their first call
};

/// Reads the headers of a file.
BinaryImage read_image(const std::filesystem::path& file);

/// Whether a process of this program can open it, as far as its headers tell.
bool is_for_own_machine(const BinaryImage& image);

/// The C runtimes of Windows.
enum class CRuntime {
  none,            ///< the name is not one of theirs
  msvcrt,          ///< msvcrt.dll, a part of Windows that MinGW uses
  universal,       ///< ucrtbase.dll and the API sets api-ms-win-crt-...: a part of Windows since 10
  visual_c,        ///< vcruntime140.dll, msvcp140.dll and older ones: installed with a redistributable package
  visual_c_debug,  ///< their debug variants and ucrtbased.dll: installed with the compiler only
};
CRuntime c_runtime_of(const std::string& library);
/// The runtimes among the libraries that a DLL needs: "ucrtbase.dll, vcruntime140.dll". Empty if it needs none, and of ELF files.
std::string c_runtimes_of(const BinaryImage& image);

/// "x86_64", "aarch64", ..., "machine 243".
std::string machine_name(const BinaryImage& image);
/// Of this code.
Machine own_machine();
std::string own_machine_name();

/// Maximum number of symbols that are read of a file, and of the bytes of their names.
inline constexpr std::uint64_t max_symbols = 1u << 20, max_symbol_bytes = 1u << 26;

/// The names that a library offers. Nothing if its headers do not tell: it is damaged, for another machine, or stripped of its section
/// headers.
std::optional<std::vector<std::string>> exported_symbols(const std::filesystem::path& file);

/// A function that a DLL imports from another one.
struct ImportedSymbol {
  std::string library;  ///< "KERNEL32.dll"
  std::string name;
};

/// The functions that a DLL imports by name when it is opened, as far as its headers are whole. None of ELF files, which look for each
/// symbol in all libraries.
std::vector<ImportedSymbol> imported_symbols(const std::filesystem::path& file);

}  // namespace tenon::loader
