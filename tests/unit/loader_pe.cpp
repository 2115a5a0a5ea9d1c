// SPDX-License-Identifier: Apache-2.0
// What the loader reads of a DLL before Windows does, and what it says is missing; on every system.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "loader/dependencies.h"
#include "loader/image.h"
#include "pe_file.h"
#include "platform/path.h"
#include "temporary_folder.h"

using namespace tenon::loader;
using namespace tenon::test;
namespace fs = std::filesystem;

namespace {

/// A folder with a plugin, and another one that stands for System32.
struct InWindows {
  InWindows() {
    fs::create_directories(system());
    fs::create_directories(plugin().parent_path());
    write(system() / "KERNEL32.dll", PeFile{.exports = {"ExitProcess", "GetLastError"}});
  }
  fs::path system() const { return tenon::platform::path_of(folder.path()) / "System32"; }
  fs::path plugin() const { return tenon::platform::path_of(folder.path()) / "plugins" / "tenon_backend_a.dll"; }
  static void write(const fs::path& file, const PeFile& content) { std::ofstream(file, std::ios::binary) << content.bytes(); }
  Missing missing(const std::vector<fs::path>& loaded = {}) const {
    LibrarySearch search;
    search.system = {system()};
    search.loaded = loaded;
    return find_missing(plugin(), search);
  }
  const TemporaryFolder folder;
};

}  // namespace

TEST_CASE_FIXTURE(InFolder, "pe: imports, delayed imports and exports are read") {
  const PeFile dll{.imports = {{"KERNEL32.dll", {"ExitProcess", "#7"}}, {"vcruntime140.dll", {"memcpy"}}},
                   .delayed = {"nvcuda.dll"},
                   .exports = {"tenon_backend_query", "other"}};
  const std::string file = folder.write("a.dll", dll.bytes());
  const BinaryImage image = read_image(file);
  CHECK(image.format == BinaryImage::Format::pe);
  CHECK(image.kind == BinaryImage::Kind::shared_library);
  CHECK(image.is_64_bit);
  CHECK(image.machine == own_machine());
  CHECK(image.needed == std::vector<std::string>{"KERNEL32.dll", "vcruntime140.dll"});
  CHECK(image.delayed == std::vector<std::string>{"nvcuda.dll"});
  CHECK(exported_symbols(file) == std::vector<std::string>{"tenon_backend_query", "other"});
  const auto imported = imported_symbols(file);
  REQUIRE(imported.size() == 2);
  CHECK(imported[0].library == "KERNEL32.dll");
  CHECK(imported[0].name == "ExitProcess");
  CHECK(imported[1].name == "memcpy");
}

TEST_CASE_FIXTURE(InFolder, "pe: other machines and other kinds of files are told apart") {
  PeFile dll;
  dll.machine = pe::machine_386;
  dll.magic = pe::magic_32;
  BinaryImage image = read_image(folder.write("a.dll", dll.bytes()));
  CHECK(image.kind == BinaryImage::Kind::shared_library);
  CHECK_FALSE(image.is_64_bit);
  CHECK(machine_name(image) == "x86");
  CHECK_FALSE(is_for_own_machine(image));
  dll = {};
  dll.characteristics = pe::is_executable;
  image = read_image(folder.write("b.dll", dll.bytes()));
  CHECK(image.kind == BinaryImage::Kind::other_kind);
  CHECK(image.fault == "a program");
  dll = {};
  dll.machine = 0x1234;
  CHECK(machine_name(read_image(folder.write("c.dll", dll.bytes()))) == "machine 4660");
}

TEST_CASE_FIXTURE(InFolder, "pe: a file that was cut is damaged, wherever it was cut") {
  const std::string whole = PeFile{.imports = {{"KERNEL32.dll", {"ExitProcess"}}}, .exports = {"f"}}.bytes();
  for (std::size_t size = 2; size < whole.size(); size += 3) {
    CAPTURE(size);
    const std::string file = folder.write("a.dll", whole.substr(0, size));
    const BinaryImage image = read_image(file);
    CHECK((image.kind == BinaryImage::Kind::damaged || image.kind == BinaryImage::Kind::other_kind || !is_for_own_machine(image)));
    CHECK((image.kind != BinaryImage::Kind::damaged || !image.fault.empty()));
    static_cast<void>(exported_symbols(file));
    static_cast<void>(imported_symbols(file));
  }
  const BinaryImage image = read_image(folder.write("b.dll", whole.substr(0, whole.size() - 1)));
  CHECK(image.kind == BinaryImage::Kind::damaged);
  CHECK(contains(image.fault, "it is truncated: its headers describe " + std::to_string(whole.size()) + " bytes"));
}

TEST_CASE("pe: C runtimes are known by the names of their libraries") {
  CHECK(c_runtime_of("msvcrt.dll") == CRuntime::msvcrt);
  CHECK(c_runtime_of("api-ms-win-crt-runtime-l1-1-0.dll") == CRuntime::universal);
  CHECK(c_runtime_of("VCRUNTIME140_1.dll") == CRuntime::visual_c);
  CHECK(c_runtime_of("msvcr100.dll") == CRuntime::visual_c);
  CHECK(c_runtime_of("VCRUNTIME140D.dll") == CRuntime::visual_c_debug);
  CHECK(c_runtime_of("ucrtbased.dll") == CRuntime::visual_c_debug);
  CHECK(c_runtime_of("KERNEL32.dll") == CRuntime::none);
  BinaryImage image;
  image.format = BinaryImage::Format::pe;
  image.needed = {"KERNEL32.dll", "VCRUNTIME140.dll", "api-ms-win-crt-heap-l1-1-0.dll", "api-ms-win-crt-math-l1-1-0.dll"};
  CHECK(c_runtimes_of(image) == "ucrtbase.dll, vcruntime140.dll");
}

TEST_CASE_FIXTURE(InWindows, "dependencies: a DLL that is in neither folder is named, with the one that needs it") {
  write(plugin(), {.imports = {{"kernel32.DLL", {"ExitProcess"}}, {"vendor.dll", {"f"}}}});
  fs::rename(system() / "KERNEL32.dll", system() / "kernel32.DLL");  // the case matters to this test's system
  write(plugin().parent_path() / "vendor.dll", {.imports = {{"absent.dll", {"g"}}}, .exports = {"f"}});
  const Missing found = missing();
  REQUIRE(found.libraries.size() == 1);
  CHECK(found.libraries[0].name == "absent.dll");
  CHECK(found.libraries[0].needed_by == plugin().parent_path() / "vendor.dll");
  CHECK(found.libraries[0].folders ==
        std::vector<std::string>{tenon::platform::text_of(plugin().parent_path()), tenon::platform::text_of(system())});
  CHECK(found.symbols.empty());
  CHECK(found.unusable.empty());
}

TEST_CASE_FIXTURE(InWindows, "dependencies: API sets and loaded DLLs are not searched for") {
  write(plugin(), {.imports = {{"api-ms-win-crt-heap-l1-1-0.dll", {"malloc"}}, {"EXT-MS-win-a-l1-1-0.dll", {"f"}}, {"Tenon.dll", {"f"}}}});
  const Missing found = missing({system() / "tenon.DLL"});
  CHECK(found.libraries.empty());
  CHECK(missing().libraries.size() == 1);
}

TEST_CASE_FIXTURE(InWindows, "dependencies: a function that the DLL does not have is named") {
  write(plugin(), {.imports = {{"KERNEL32.dll", {"ExitProcess", "NewInWindows12"}}}});
  const Missing found = missing();
  CHECK(found.libraries.empty());
  REQUIRE(found.symbols.size() == 1);
  CHECK(found.symbols[0].name == "NewInWindows12");
  CHECK(found.symbols[0].library == "KERNEL32.dll");
  CHECK(found.symbols[0].found == system() / "KERNEL32.dll");
}

TEST_CASE_FIXTURE(InWindows, "dependencies: a DLL for another machine next to the plugin is reported, since Windows takes no other") {
  write(plugin(), {.imports = {{"vendor.dll", {"f"}}}});
  PeFile vendor{.exports = {"f"}};
  vendor.machine = pe::machine_386;
  vendor.magic = pe::magic_32;
  write(plugin().parent_path() / "vendor.dll", vendor);
  write(system() / "vendor.dll", {.exports = {"f"}});
  const Missing found = missing();
  CHECK(found.libraries.empty());
  REQUIRE(found.unusable.size() == 1);
  CHECK(machine_name(found.unusable[0].image) == "x86");
}
