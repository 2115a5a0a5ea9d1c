// SPDX-License-Identifier: Apache-2.0
// What the loader reads of a file before the dynamic linker: malformed files cost neither time nor memory.
#include "loader/elf_format.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "loader/image.h"
#include "temporary_folder.h"

using namespace tenon::loader;
using namespace tenon::test;

namespace {

using Entries = std::vector<std::pair<std::int64_t, std::uint64_t>>;

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint16_t own_machine_code() {
  switch (own_machine()) {
    case Machine::x86_64:
      return elf::machine_x86_64;
    case Machine::aarch64:
      return elf::machine_aarch64;
    case Machine::riscv:
      return elf::machine_riscv;
    case Machine::powerpc64:
      return elf::machine_powerpc64;
    default:
      return 0;
  }
}

/// A shared object of headers, dynamic entries and their strings, mapped at file offsets.
std::string shared_object(const Entries& entries, const std::string& texts, int dynamic_segments = 1) {
  const std::uint64_t headers = sizeof(elf::Header) + (1 + static_cast<std::uint64_t>(dynamic_segments)) * sizeof(elf::Segment);
  const std::uint64_t dynamic_bytes = (entries.size() + 2) * sizeof(elf::Dynamic), strings = headers + dynamic_bytes;
  elf::Header header{};
  std::memcpy(header.ident, "\177ELF", 4);
  header.ident[elf::class_at] = elf::class_64;
  header.ident[elf::data_at] = elf::data_little_endian;
  header.type = elf::type_shared;
  header.machine = own_machine_code();
  header.program_headers = sizeof header;
  header.program_header_count = static_cast<std::uint16_t>(1 + dynamic_segments);
  std::string file;
  append(file, header);
  append(file, elf::Segment{elf::segment_load, 4, 0, 0, 0, strings + texts.size(), strings + texts.size(), 4096});
  for (int i = 0; i < dynamic_segments; ++i) {
    append(file, elf::Segment{elf::segment_dynamic, 4, headers, headers, headers, dynamic_bytes, dynamic_bytes, 8});
  }
  append(file, elf::Dynamic{elf::tag_strings, strings});
  for (const auto& [tag, value] : entries) append(file, elf::Dynamic{tag, value});
  append(file, elf::Dynamic{elf::tag_end, 0});
  return file + texts;
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "elf: needed libraries and the run path are read, $ORIGIN resolved") {
  const std::string texts("\0liba.so\0libb.so.1\0$ORIGIN/../lib:/opt/${ORIGIN}\0", 49);
  const std::string file = folder.write("a.so", shared_object({{elf::tag_needed, 1}, {elf::tag_needed, 9}, {elf::tag_runpath, 19}}, texts));
  const BinaryImage image = read_image(file);
  CHECK(image.kind == BinaryImage::Kind::shared_library);
  CHECK(image.needed == std::vector<std::string>{"liba.so", "libb.so.1"});
  CHECK(image.run_path == std::vector<std::string>{folder.path() + "/../lib", "/opt/" + folder.path()});
}

TEST_CASE_FIXTURE(InFolder, "elf: a folder may be called $ORIGIN") {
  std::filesystem::create_directory(folder.file("$ORIGIN"));
  const std::string file = folder.write("$ORIGIN/a.so", shared_object({{elf::tag_runpath, 1}}, std::string("\0$ORIGIN/lib\0", 13)));
  CHECK(read_image(file).run_path == std::vector<std::string>{folder.path() + "/$ORIGIN/lib"});
}

TEST_CASE_FIXTURE(InFolder, "elf: many entries that share a long string are not all read") {
  const std::string texts = '\0' + std::string(10'000, 'x') + '\0';
  const BinaryImage image = read_image(folder.write("a.so", shared_object(Entries(1000, {elf::tag_needed, 1}), texts)));
  CHECK(image.kind == BinaryImage::Kind::damaged);
  CHECK(contains(image.fault, "more than 65536 bytes"));
}

TEST_CASE_FIXTURE(InFolder, "elf: only one of many dynamic segments is read") {
  const std::string texts("\0liba.so\0", 9);
  const BinaryImage image = read_image(folder.write("a.so", shared_object({{elf::tag_needed, 1}}, texts, 60'000)));
  CHECK(image.kind == BinaryImage::Kind::shared_library);
  CHECK(image.needed == std::vector<std::string>{"liba.so"});
}

TEST_CASE_FIXTURE(InFolder, "elf: an unterminated name is damage") {
  const BinaryImage image = read_image(folder.write("a.so", shared_object({{elf::tag_needed, 1}}, std::string("\0liba", 5))));
  CHECK(image.kind == BinaryImage::Kind::damaged);
}

TEST_CASE_FIXTURE(InFolder, "elf: public symbols that are defined are exported, others are not") {
  const std::string texts("\0f\0hidden\0needed\0local\0weak\0", 28);
  const std::uint64_t symbols = sizeof(elf::Header), strings = symbols + 5 * sizeof(elf::Symbol), sections = strings + texts.size();
  elf::Header header{};
  std::memcpy(header.ident, "\177ELF", 4);
  header.ident[elf::class_at] = elf::class_64;
  header.ident[elf::data_at] = elf::data_little_endian;
  header.section_headers = sections;
  header.section_header_count = 2;
  std::string file;
  append(file, header);
  constexpr unsigned char global = 1 << 4, weak = 2 << 4, local = 0, hidden = 2;
  append(file, elf::Symbol{1, global, 0, 1, 0, 0});
  append(file, elf::Symbol{3, global, hidden, 1, 0, 0});
  append(file, elf::Symbol{10, global, 0, elf::section_undefined, 0, 0});
  append(file, elf::Symbol{17, local, 0, 1, 0, 0});
  append(file, elf::Symbol{23, weak, elf::visibility_protected, 1, 0, 0});
  file += texts;
  append(file, elf::Section{0, elf::section_dynamic_symbols, 0, 0, symbols, 5 * sizeof(elf::Symbol), 1, 0, 8, sizeof(elf::Symbol)});
  append(file, elf::Section{0, 3, 0, 0, strings, texts.size(), 0, 0, 1, 0});
  CHECK(exported_symbols(folder.write("a.so", file)) == std::vector<std::string>{"f", "weak"});
  CHECK_FALSE(exported_symbols(folder.write("b.so", file.substr(0, file.size() - 1))));
}

TEST_CASE_FIXTURE(InFolder, "image: text is of no format") {
  const BinaryImage image = read_image(folder.write("a.so", "backends:\n"));
  CHECK(image.format == BinaryImage::Format::none);
  CHECK(image.kind == BinaryImage::Kind::not_an_image);
  CHECK_FALSE(exported_symbols(folder.file("a.so")));
  CHECK(read_image(folder.file("gone")).kind == BinaryImage::Kind::empty);
}
