// SPDX-License-Identifier: Apache-2.0
// What the loader reads of a file before the dynamic linker: malformed files cost neither time nor memory.
#include "loader/elf.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "temporary_folder.h"

using namespace tenon::loader;
using namespace tenon::test;

namespace {

using Entries = std::vector<std::pair<std::int64_t, std::uint64_t>>;

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A shared object of headers, dynamic entries and their strings, mapped at file offsets.
std::string shared_object(const Entries& entries, const std::string& texts, int dynamic_segments = 1) {
  const std::uint64_t headers = sizeof(Elf64_Ehdr) + (1 + static_cast<std::uint64_t>(dynamic_segments)) * sizeof(Elf64_Phdr);
  const std::uint64_t dynamic_bytes = (entries.size() + 2) * sizeof(Elf64_Dyn), strings = headers + dynamic_bytes;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = own_machine();
  header.e_phoff = sizeof header;
  header.e_phnum = static_cast<std::uint16_t>(1 + dynamic_segments);
  std::string file;
  append(file, header);
  append(file, Elf64_Phdr{PT_LOAD, PF_R, 0, 0, 0, strings + texts.size(), strings + texts.size(), 4096});
  for (int i = 0; i < dynamic_segments; ++i) {
    append(file, Elf64_Phdr{PT_DYNAMIC, PF_R, headers, headers, headers, dynamic_bytes, dynamic_bytes, 8});
  }
  append(file, Elf64_Dyn{DT_STRTAB, {strings}});
  for (const auto& [tag, value] : entries) append(file, Elf64_Dyn{tag, {value}});
  append(file, Elf64_Dyn{DT_NULL, {0}});
  return file + texts;
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "elf: needed libraries and the run path are read, $ORIGIN resolved") {
  const std::string texts("\0liba.so\0libb.so.1\0$ORIGIN/../lib:/opt/${ORIGIN}\0", 49);
  const std::string file = folder.write("a.so", shared_object({{DT_NEEDED, 1}, {DT_NEEDED, 9}, {DT_RUNPATH, 19}}, texts));
  const Elf elf = read_elf(file);
  CHECK(elf.kind == Elf::Kind::shared_object);
  CHECK(elf.needed == std::vector<std::string>{"liba.so", "libb.so.1"});
  CHECK(elf.run_path == std::vector<std::string>{folder.path() + "/../lib", "/opt/" + folder.path()});
}

TEST_CASE_FIXTURE(InFolder, "elf: a folder may be called $ORIGIN") {
  std::filesystem::create_directory(folder.file("$ORIGIN"));
  const std::string file = folder.write("$ORIGIN/a.so", shared_object({{DT_RUNPATH, 1}}, std::string("\0$ORIGIN/lib\0", 13)));
  CHECK(read_elf(file).run_path == std::vector<std::string>{folder.path() + "/$ORIGIN/lib"});
}

TEST_CASE_FIXTURE(InFolder, "elf: many entries that share a long string are not all read") {
  const std::string texts = '\0' + std::string(10'000, 'x') + '\0';
  const Elf elf = read_elf(folder.write("a.so", shared_object(Entries(1000, {DT_NEEDED, 1}), texts)));
  CHECK(elf.kind == Elf::Kind::damaged);
  CHECK(contains(elf.fault, "more than 65536 bytes"));
}

TEST_CASE_FIXTURE(InFolder, "elf: only one of many dynamic segments is read") {
  const std::string texts("\0liba.so\0", 9);
  const Elf elf = read_elf(folder.write("a.so", shared_object({{DT_NEEDED, 1}}, texts, 60'000)));
  CHECK(elf.kind == Elf::Kind::shared_object);
  CHECK(elf.needed == std::vector<std::string>{"liba.so"});
}

TEST_CASE_FIXTURE(InFolder, "elf: an unterminated name is damage") {
  const Elf elf = read_elf(folder.write("a.so", shared_object({{DT_NEEDED, 1}}, std::string("\0liba", 5))));
  CHECK(elf.kind == Elf::Kind::damaged);
}
