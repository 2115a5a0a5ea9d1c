// SPDX-License-Identifier: Apache-2.0
// ELF files that cannot be opened: damaged, for another machine or system, or without a library, a version or a symbol that they need.
#include "loading.h"

TEST_CASE("files: a Windows library is recognised") {
  write_plugin("windows", std::string("MZ\x90\0", 4) + std::string(200, '\0'));
  check_failure("windows", Stage::found, TENON_INVALID_ARGUMENT, "the file is a Windows library", put_own_build());
}

TEST_CASE("files: a truncated library is refused before it is mapped, wherever it was cut") {
  const std::string whole = bytes_of(file_of("healthy"));
  for (const std::size_t size : {whole.size() - 1, whole.size() / 3, std::size_t{700}}) {
    write_plugin("truncated", whole.substr(0, size));
    check_failure("truncated", Stage::found, TENON_INVALID_ARGUMENT, "it is truncated: its headers describe", "copy or build it again");
  }
  write_plugin("truncated", whole.substr(0, 100));
  check_failure("truncated", Stage::found, TENON_INVALID_ARGUMENT, "it ends inside its program headers: 100 bytes",
                "copy or build it again");
  write_plugin("truncated", whole.substr(0, 20));
  check_failure("truncated", Stage::found, TENON_INVALID_ARGUMENT, "it ends inside its header: 20 bytes", "copy or build it again");
}

TEST_CASE("files: a library for another machine is refused with its machine") {
  std::string bytes = bytes_of(file_of("healthy"));
  bytes[18] = 22;  // EM_S390
  bytes[19] = 0;
  write_plugin("other_machine", bytes);
  check_failure("other_machine", Stage::found, TENON_INCOMPATIBLE, "64-bit little-endian s390", put_own_build());
}

TEST_CASE("files: an object file is not a shared object") {
  std::string bytes = bytes_of(file_of("healthy"));
  bytes[16] = 1;  // ET_REL
  write_plugin("object_file", bytes);
  check_failure("object_file", Stage::found, TENON_INVALID_ARGUMENT, "the file is an object file", "-shared");
}

TEST_CASE("files: a missing library is named, with the library that needs it and the searched folders") {
  check_failure("missing_library", Stage::found, TENON_INCOMPATIBLE,
                "the library libtenon_absent.so.1, needed by libtenon_backend_missing_library.so, is in none of these folders: ",
                "install the package that has libtenon_absent.so.1");
  const Loaded loaded({file_of("missing_library")});
  CHECK(contains(loaded.only().text, "/usr/lib"));
}

TEST_CASE("files: an undefined symbol is named when the library is opened, not when it is called") {
  check_failure("undefined_symbol", Stage::found, TENON_INCOMPATIBLE, "undefined symbol: tenon_absent_function", "-z,defs");
}

TEST_CASE("files: a plugin that needs a newer C library names the needed and the installed version") {
  check_failure("newer_libc", Stage::found, TENON_INCOMPATIBLE, "libtenon_backend_newer_libc.so needs GLIBC_2.99 of libc.so.6, and ",
                "install a build of the plugin made on a system no newer than this one, or a newer libc.so.6");
  const Loaded loaded({file_of("newer_libc")});
  CHECK(contains(loaded.only().text, "libc.so.6 has GLIBC_2."));
  CHECK(contains(loaded.only().text, " at most"));
  CHECK_FALSE(contains(loaded.only().text, "GLIBC_PRIVATE"));
}

TEST_CASE("files: a plugin that needs a newer C++ library names the version") {
  check_failure("newer_libstdcxx", Stage::found, TENON_INCOMPATIBLE, "needs GLIBCXX_3.4.99 of libstdc++.so.6, and ",
                "or a newer libstdc++.so.6");
  const Loaded loaded({file_of("newer_libstdcxx")});
  CHECK(contains(loaded.only().text, "has GLIBCXX_3.4."));
}

TEST_CASE("files: a plugin for another C library is distinguished from one that lacks a library") {
  check_failure("musl", Stage::found, TENON_INCOMPATIBLE,
                "libtenon_backend_musl.so was built for the musl C library (it needs libc.musl-x86_64.so.1)", "with glibc");
}

TEST_CASE("files: a missing library is also reported in a field of the record") {
  const Loaded loaded({file_of("missing_library")});
  REQUIRE(loaded.only().missing.size() == 1);
  const MissingLibrary& missing = loaded.only().missing[0];
  CHECK(missing.name == "libtenon_absent.so.1");
  CHECK(missing.needed_by == file_of("missing_library"));
  CHECK(std::find(missing.folders.begin(), missing.folders.end(), "/usr/lib") != missing.folders.end());
}

TEST_CASE("files: a library of a cross compiler is refused with its machine") {
  if (!fs::exists(file_of("aarch64"))) {
    MESSAGE("skipped: aarch64-linux-gnu-gcc was not installed at build time");
    return;
  }
#if defined(__x86_64__)
  check_failure("aarch64", Stage::found, TENON_INCOMPATIBLE, "expected 64-bit little-endian x86_64, got 64-bit little-endian aarch64",
                "put a backend built for linux-x86_64 there");
#endif
}

TEST_CASE("files: a 32-bit library is refused as such") {
  std::string bytes = bytes_of(file_of("healthy"));
  bytes[4] = 1;   // ELFCLASS32
  bytes[18] = 3;  // EM_386
  bytes[19] = 0;
  write_plugin("thirty_two", bytes);
  check_failure("thirty_two", Stage::found, TENON_INCOMPATIBLE, "got 32-bit little-endian x86", put_own_build());
}
