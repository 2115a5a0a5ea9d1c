// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "loader/find.h"
#include "loader/loader.h"
#include "platform/conventions.h"
#include "platform/path.h"
#include "platform/system.h"
#include "temporary_folder.h"

namespace fs = std::filesystem;
using namespace tenon::loader;
using namespace tenon::test;

namespace {

/// The file name of a backend on this system.
std::string backend(const std::string& name) {
  const tenon::platform::Conventions& system = tenon::platform::conventions();
  return std::string(system.library_prefix) + "tenon_backend_" + name + std::string(system.library_suffix);
}

/// A folder that exists nowhere, as an absolute path of this system.
fs::path root(const char* path) {
  return fs::absolute(path);
}

/// Joins folders as the environment does.
std::string list_of(std::initializer_list<std::string> folders) {
  std::string list;
  for (const std::string& folder : folders)
    list += (&folder == folders.begin() ? "" : std::string(1, tenon::platform::conventions().path_separator)) + folder;
  return list;
}

std::vector<std::string> origins(const std::vector<SearchPlace>& places) {
  std::vector<std::string> all;
  for (const SearchPlace& place : places) all.push_back(place.origin);
  return all;
}

}  // namespace

TEST_CASE("find: a program that contains the loader is known by its file, whatever argv[0] is") {
  CHECK(surroundings().library == tenon::platform::path_of(tenon::platform::executable_path()));
}

TEST_CASE("find: the name of a backend is derived from its file name") {
  CHECK(backend_name_of(root("/lib") / backend("cuda")) == "cuda");
  CHECK(backend_name_of(backend("my_gpu2")) == "my_gpu2");
  CHECK_FALSE(backend_name_of(backend("")));
  CHECK_FALSE(backend_name_of(backend("cuda") + ".1"));
  CHECK_FALSE(backend_name_of("x" + backend("cuda")));
  CHECK_FALSE(backend_name_of("libtenon.so"));
  CHECK_FALSE(backend_name_of("tenon.dll"));
  // The convention of the other system.
  CHECK(backend_name_of("tenon_backend_cuda.dll").has_value() != backend_name_of("libtenon_backend_cuda.so").has_value());
}

TEST_CASE("find: API comes before command line, environment, YAML and the folder next to the library") {
  Surroundings around;
  around.environment = list_of({"/environment/one", "/environment/two"});
  around.library = "/opt/tenon/lib/libtenon.so";
  const SearchPlace api[] = {{"/api", "API"}, {"/site-packages/acme/backends", "package acme"}};
  const fs::path command_line[] = {"/line"}, yaml[] = {"/yaml"};
  const auto places = ordered_places(api, command_line, yaml, around);
  CHECK(origins(places) == std::vector<std::string>{"API", "package acme", "command line", "TENON_BACKEND_PATH", "TENON_BACKEND_PATH",
                                                    "backends.search", "next to the library"});
  CHECK(places[3].path == root("/environment/one"));
  CHECK(places[4].path == root("/environment/two"));
  CHECK(places[6].path == root("/opt/tenon/lib/tenon/backends"));
}

TEST_CASE("find: with elevated privileges the environment is not read") {
  Surroundings around;
  around.environment = "/environment";
  around.elevated = true;
  const fs::path yaml[] = {"/yaml"};
  CHECK(origins(ordered_places({}, {}, yaml, around)) == std::vector<std::string>{"backends.search"});
}

TEST_CASE("find: empty entries of the environment are not the working directory") {
  Surroundings around;
  around.environment = list_of({"", "/environment", "", ""});
  const auto places = ordered_places({}, {}, {}, around);
  REQUIRE(places.size() == 1);
  CHECK(places[0].path == root("/environment"));
}

TEST_CASE("find: a leading ~/ is the home directory and a relative path becomes absolute") {
  Surroundings around;
  around.home = "/home/ada";
  const fs::path yaml[] = {"~/.local/lib/tenon/backends", "plugins/../here"};
  const auto places = ordered_places({}, {}, yaml, around);
  REQUIRE(places.size() == 2);
  CHECK(places[0].path == fs::path("/home/ada/.local/lib/tenon/backends").lexically_normal());
  CHECK(places[1].path == fs::current_path() / "here");
}

TEST_CASE_FIXTURE(InFolder, "find: a program in bin finds the backends of its install tree") {
  fs::create_directories(folder.file("bin"));
  fs::create_directories(folder.file("lib/tenon/backends"));
  Surroundings around;
  around.library = folder.file("bin/program");
  const auto places = ordered_places({}, {}, {}, around);
  REQUIRE(places.size() == 1);
  CHECK(places[0].path == folder.file("lib/tenon/backends"));
}

TEST_CASE_FIXTURE(InFolder, "find: a program in lib/tenon finds the backends next to it") {
  fs::create_directories(folder.file("lib/tenon/backends"));
  Surroundings around;
  around.library = folder.file("lib/tenon/tenon-bench");
  const auto places = ordered_places({}, {}, {}, around);
  REQUIRE(places.size() == 1);
  CHECK(places[0].path == folder.file("lib/tenon/backends"));
}

TEST_CASE("find: the folder of the programs that Tenon starts also has the backends") {
  CHECK(support_folder() / "backends" == default_places({}, {}, {}).back().path);
  CHECK(fs::exists(default_probe(ProbeMode::once).helper));
}

TEST_CASE_FIXTURE(InFolder, "find: folders and files may have any name") {
  const fs::path place = fs::path(folder.path()) / tenon::platform::path_of("\u63d2\u4ef6 \u0431\u044d\u043a\u0435\u043d\u0434 \u00fc");
  fs::create_directories(place);
  std::ofstream(place / backend("a")) << "x";
  Surroundings around;
  around.environment = list_of({tenon::platform::text_of(place)});
  const auto places = ordered_places({}, {}, {}, around);
  REQUIRE(places.size() == 1);
  PlaceRecord record;
  const auto candidates = candidates_in(places[0], record);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].path == place / backend("a"));
  CHECK(candidates[0].name == "a");
}

TEST_CASE("find: the working directory is never searched implicitly") {
  for (const SearchPlace& place : default_places({}, {}, {})) CHECK(place.path != fs::current_path());
}

TEST_CASE_FIXTURE(InFolder, "find: a folder gives its plugins sorted by name, without subfolders") {
  for (const std::string& file : {backend("b"), backend("a"), backend("c") + ".1", std::string("notes.txt")}) folder.write(file, "x");
  fs::create_directories(folder.file("below"));
  folder.write("below/" + backend("d"), "x");
  PlaceRecord record;
  const auto candidates = candidates_in({folder.path(), "API"}, record);
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].name == "a");
  CHECK(candidates[1].name == "b");
  CHECK(candidates[0].path.is_absolute());
  CHECK(candidates[0].origin == "API");
  CHECK(record.text == "2 candidates");
}

TEST_CASE_FIXTURE(InFolder, "find: a location without plugins has a reason") {
  PlaceRecord record;
  CHECK(candidates_in({folder.path(), "API"}, record).empty());
  CHECK(record.text == "the folder has no file named " + backend("<name>"));
  CHECK(candidates_in({folder.file("gone"), "API"}, record).empty());
  CHECK(record.text == "no such folder");
}

TEST_CASE_FIXTURE(InFolder, "find: an explicit file is a candidate with any name, and a library name even if the file is missing") {
  folder.write("my_backend.plugin", "x");
  PlaceRecord record;
  auto candidates = candidates_in({folder.file("my_backend.plugin"), "command line"}, record);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].name == "my_backend");
  candidates = candidates_in({folder.file(backend("gone")), "command line"}, record);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].name == "gone");
  CHECK(record.text == "no such file");
}

TEST_CASE("glob: star matches any run of characters, question mark one, everything else itself") {
  CHECK(matches_glob("*", ""));
  CHECK(matches_glob("cuda", "cuda"));
  CHECK(matches_glob("c*a", "cuda"));
  CHECK(matches_glob("c*a", "ca"));
  CHECK(matches_glob("*_*_*", "a_b_c"));
  CHECK(matches_glob("*ab", "aab"));
  CHECK(matches_glob("cud?", "cuda"));
  CHECK_FALSE(matches_glob("cud?", "cud"));
  CHECK_FALSE(matches_glob("cuda", "cuda2"));
  CHECK_FALSE(matches_glob("c*a", "cudas"));
  CHECK_FALSE(matches_glob("", "cuda"));
}

TEST_CASE("deny: a deny pattern wins over an allow pattern, and one with a slash matches the path") {
  Options options;
  const fs::path path = "/opt/vendor/libtenon_backend_cuda.so";
  CHECK_FALSE(denied_by(options, "cuda", path));
  options.allow = {"cu*"};
  CHECK_FALSE(denied_by(options, "cuda", path));
  CHECK(denied_by(options, "openblas", path));
  options.deny = {"/opt/vendor/*"};
  CHECK(denied_by(options, "cuda", path) == "'/opt/vendor/*' in backends.deny excludes it");
  CHECK_FALSE(denied_by(options, "cuda", "/usr/lib/libtenon_backend_cuda.so"));
}

TEST_CASE_FIXTURE(InFolder, "checksum: SHA-256 matches published sums") {
  // FIPS 180-4 examples, and a length whose padding needs another block.
  folder.write("abc", "abc");
  folder.write("empty", "");
  folder.write("two", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
  CHECK(checksum(folder.file("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(checksum(folder.file("empty")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(checksum(folder.file("two")) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(checksum(folder.file("gone")).empty());
}
