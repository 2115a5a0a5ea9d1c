// SPDX-License-Identifier: Apache-2.0
// The file itself: the symbols it exports and the libraries it needs.
#include <elf.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "core.h"
#include "loader/elf.h"

namespace tenon::conformance {
namespace {

template <class T>
T read_at(std::ifstream& file, std::uint64_t offset) {
  T value{};
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::string text_at(std::ifstream& file, std::uint64_t offset) {
  std::string text;
  file.seekg(static_cast<std::streamoff>(offset));
  std::getline(file, text, '\0');
  return text;
}

/// Names that a shared object exports, from its dynamic symbol table. Empty if it has no section headers.
std::set<std::string> exports_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  const auto section = [&](std::uint64_t i) { return read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr)); };
  std::set<std::string> names;
  for (std::uint64_t s = 0; s < header.e_shnum && file; ++s) {
    const Elf64_Shdr table = section(s);
    if (table.sh_type != SHT_DYNSYM) continue;
    const Elf64_Shdr strings = section(table.sh_link);
    for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym) && file; ++i) {
      const auto symbol = read_at<Elf64_Sym>(file, table.sh_offset + i * sizeof(Elf64_Sym));
      const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
      const bool is_public = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
      if (is_public && symbol.st_shndx != SHN_UNDEF) names.insert(text_at(file, strings.sh_offset + symbol.st_name));
    }
  }
  return names;
}

const std::filesystem::path& file_of(const CaseContext& context) {
  const std::filesystem::path& file = context.device.source().file;
  if (file.empty()) throw NotRun("the backend is part of the process, not a file");
  return file;
}

/// A second public symbol may collide with that of another library, so that one is called instead of the other.
void exports(CaseContext& context) {
  std::set<std::string> names = exports_of(file_of(context));
  if (names.empty()) throw NotRun("the file has no section headers to find its symbols by");
  // Symbols that linkers add.
  for (const char* own : {TENON_BACKEND_QUERY_SYMBOL, "_init", "_fini", "_edata", "_end", "__bss_start"}) names.erase(own);
  if (names.empty()) return;
  const std::size_t count = names.size();
  std::vector<std::string> some(names.begin(), std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, 8))));
  fail(fmt::format(
      "expected {} as the only public symbol, got {} more: {}{}; compile with -fvisibility=hidden, or link with a version script",
      TENON_BACKEND_QUERY_SYMBOL, count, fmt::join(some, ", "), count > some.size() ? ", ..." : ""));
}

/// A backend uses the core only through the host table, so that it runs with any build of the core.
void needs_no_core(CaseContext& context) {
  for (const std::string& needed : loader::read_elf(file_of(context)).needed) {
    if (needed.rfind("libtenon.", 0) == 0)
      fail(fmt::format("it needs {}, expected no library of Tenon: all services are in the host table", needed));
  }
}

}  // namespace

std::vector<Case> core_library_cases() {
  return core_cases({
      {"library/exports", exports},
      {"library/needs_no_core", needs_no_core},
  });
}

}  // namespace tenon::conformance
