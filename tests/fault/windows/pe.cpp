// SPDX-License-Identifier: Apache-2.0
// DLLs that cannot be opened: damaged, for another machine or system, or without a library or a function that they need.
#include <cstdint>
#include <cstring>

#include "loader/dependencies.h"
#include "loading.h"

namespace {

/// Where the file header of a DLL begins: after its signature.
std::size_t file_header_of(const std::string& dll) {
  std::uint32_t signature = 0;
  std::memcpy(&signature, dll.data() + 0x3c, sizeof signature);
  return signature + 4;
}

}  // namespace

TEST_CASE("files: an ELF library is recognised") {
  write_plugin("elf", std::string("\x7f"
                                  "ELF\2\1\1",
                                  7) +
                          std::string(200, '\0'));
  check_failure("elf", Stage::found, TENON_INVALID_ARGUMENT, "the file is an ELF file, as Linux has them, expected a Windows DLL",
                put_own_build());
}

TEST_CASE("files: a truncated DLL is refused before it is mapped, wherever it was cut") {
  const std::string whole = bytes_of(file_of("healthy"));
  for (const std::size_t size : {whole.size() / 2, whole.size() / 3, std::size_t{2000}}) {
    write_plugin("truncated", whole.substr(0, size));
    check_failure("truncated", Stage::found, TENON_INVALID_ARGUMENT, "it is truncated: its headers describe", "copy or build it again");
  }
  write_plugin("truncated", whole.substr(0, file_header_of(whole) + 30));
  check_failure("truncated", Stage::found, TENON_INVALID_ARGUMENT, "it ends inside its headers: ", "copy or build it again");
  write_plugin("truncated", whole.substr(0, 20));
  check_failure("truncated", Stage::found, TENON_INVALID_ARGUMENT, "it ends inside its headers, or has none of a DLL: 20 bytes",
                "copy or build it again");
}

TEST_CASE("files: a DLL for another machine is refused with its machine") {
  std::string bytes = bytes_of(file_of("healthy"));
  const std::size_t header = file_header_of(bytes);
  bytes[header] = 0x64;  // IMAGE_FILE_MACHINE_ARM64
  bytes[header + 1] = static_cast<char>(0xaa);
  write_plugin("other_machine", bytes);
  check_failure("other_machine", Stage::found, TENON_INCOMPATIBLE, "got 64-bit little-endian aarch64", put_own_build());
  bytes[header] = 0x4c;  // IMAGE_FILE_MACHINE_I386, and the magic number of 32-bit files
  bytes[header + 1] = 0x01;
  bytes[header + 20] = 0x0b;
  bytes[header + 21] = 0x01;
  write_plugin("thirty_two", bytes);
  check_failure("thirty_two", Stage::found, TENON_INCOMPATIBLE, "got 32-bit little-endian x86", put_own_build());
}

TEST_CASE("files: a program is not a DLL") {
  write_plugin("program", bytes_of(TENON_PROBE));
  check_failure("program", Stage::found, TENON_INVALID_ARGUMENT, "the file is a program, expected a Windows DLL", "/DLL");
}

TEST_CASE("files: a missing DLL is named, with the one that needs it and the searched folders") {
  check_failure("missing_library", Stage::found, TENON_INCOMPATIBLE,
                "the library tenon_absent.dll, needed by tenon_backend_missing_library.dll, is in none of these folders: ",
                "install the program that has tenon_absent.dll, or put it next to the plugin");
  const Loaded loaded({file_of("missing_library")});
  REQUIRE(loaded.only().missing.size() == 1);
  const MissingLibrary& missing = loaded.only().missing[0];
  CHECK(missing.name == "tenon_absent.dll");
  CHECK(fs::equivalent(missing.needed_by, file_of("missing_library")));
  REQUIRE(missing.folders.size() >= 2);
  CHECK(fs::equivalent(tenon::platform::path_of(missing.folders[0]), plugins / "missing_library"));
  CHECK(contains(loaded.only().text, "ystem32"));
}

TEST_CASE("files: a function that a DLL lacks is named") {
  const fs::path file = fs::path(LACKING_DIRECTORY) / backend_file_name("missing_function");
  const Missing missing = find_missing(file);
  CHECK(missing.libraries.empty());
  REQUIRE(missing.symbols.size() == 1);
  CHECK(missing.symbols[0].name == "tenon_absent_function");
  CHECK(missing.symbols[0].library == "tenon_absent.dll");
  CHECK(missing.symbols[0].needed_by == file);
}
