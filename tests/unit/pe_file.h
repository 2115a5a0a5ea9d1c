// SPDX-License-Identifier: Apache-2.0
// pe_file.h - writes DLLs of headers, imports and exports, for tests of what reads them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "loader/image.h"
#include "loader/pe_format.h"

namespace tenon::test {

/// A DLL of one section, for the machine that the tests run on unless `machine` is changed.
struct PeFile {
  using Imports = std::vector<std::pair<std::string, std::vector<std::string>>>;  ///< library -> functions; "#7" is an ordinal

  std::uint16_t machine = loader::own_machine() == loader::Machine::aarch64 ? loader::pe::machine_aarch64 : loader::pe::machine_x86_64;
  std::uint16_t characteristics = loader::pe::is_executable | loader::pe::is_dll;
  std::uint16_t magic = loader::pe::magic_64;
  Imports imports;
  std::vector<std::string> delayed;
  std::vector<std::string> exports;

  std::string bytes() const;
};

namespace pe_file {

template <class T>
void put(std::string& to, std::size_t position, const T& value) {
  if (to.size() < position + sizeof value) to.resize(position + sizeof value);
  std::memcpy(to.data() + position, &value, sizeof value);
}

}  // namespace pe_file

inline std::string PeFile::bytes() const {
  using namespace loader;
  constexpr std::uint32_t base = 0x1000, headers_size = 0x200;
  std::string data;  // of the section
  const auto add_text = [&](const std::string& text) {
    const auto address = static_cast<std::uint32_t>(base + data.size());
    data += text + '\0';
    return address;
  };
  const auto add = [&](const auto& value) {
    data.resize((data.size() + 7) / 8 * 8);
    const auto address = static_cast<std::uint32_t>(base + data.size());
    pe_file::put(data, data.size(), value);
    return address;
  };
  std::vector<pe::Import> import_table;
  for (const auto& [library, functions] : imports) {
    pe::Import entry{};
    entry.library = add_text(library);
    std::vector<std::uint64_t> thunks;
    for (const std::string& function : functions) {
      thunks.push_back(function[0] == '#' ? pe::by_ordinal | std::stoul(function.substr(1))
                                          : add_text(std::string(pe::hint_size, '\0') + function));
    }
    thunks.push_back(0);
    for (const std::uint64_t thunk : thunks) {
      const std::uint32_t address = add(thunk);
      if (entry.names == 0) entry.names = entry.addresses = address;
    }
    import_table.push_back(entry);
  }
  std::vector<pe::DelayedImport> delayed_table;
  for (const std::string& library : delayed) {
    pe::DelayedImport entry{};
    entry.library = add_text(library);
    delayed_table.push_back(entry);
  }
  std::vector<std::uint32_t> names;
  for (const std::string& name : exports) names.push_back(add_text(name));
  pe::Directory directories[16]{};
  const auto add_table = [&](const auto& entries, std::size_t entry_size) {
    data.resize((data.size() + 7) / 8 * 8);
    const auto address = static_cast<std::uint32_t>(base + data.size());
    for (const auto& entry : entries) pe_file::put(data, data.size(), entry);
    data.resize(data.size() + entry_size);  // the entry that ends it
    return pe::Directory{address, static_cast<std::uint32_t>(base + data.size() - address)};
  };
  if (!imports.empty()) directories[pe::directory_imports] = add_table(import_table, sizeof(pe::Import));
  if (!delayed.empty()) directories[pe::directory_delayed_imports] = add_table(delayed_table, sizeof(pe::DelayedImport));
  if (!exports.empty()) {
    pe::Exports table{};
    table.name_count = table.function_count = static_cast<std::uint32_t>(names.size());
    table.names = add_table(names, 0).address;
    directories[pe::directory_exports] = {add(table), sizeof table};
  }

  constexpr std::uint32_t at = 0x40;  // after the DOS header
  std::string file(headers_size, '\0');
  file[0] = 'M';
  file[1] = 'Z';
  pe_file::put(file, pe::header_offset_at, at);
  pe_file::put(file, at, pe::signature);
  pe::FileHeader header{};
  header.machine = machine;
  header.section_count = 1;
  header.optional_header_size = static_cast<std::uint16_t>(pe::directories_at + sizeof directories);
  header.characteristics = characteristics;
  pe_file::put(file, at + 4, header);
  const std::size_t optional = at + 4 + sizeof header;
  pe_file::put(file, optional, magic);
  pe_file::put(file, optional + pe::headers_size_at, headers_size);
  pe_file::put(file, optional + pe::directory_count_at, std::uint32_t{16});
  pe_file::put(file, optional + pe::directories_at, directories);
  pe::Section section{};
  std::memcpy(section.name, ".rdata", 6);
  section.memory_size = section.file_size = static_cast<std::uint32_t>(data.size());
  section.address = base;
  section.position = headers_size;
  pe_file::put(file, optional + header.optional_header_size, section);
  return file + data;
}

}  // namespace tenon::test
