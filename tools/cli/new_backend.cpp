// SPDX-License-Identifier: Apache-2.0
// tenon new-backend: writes the first files of a backend into a new folder and prints the commands that build and test it.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <tenon/error.h>

#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "io/atomic_file.h"
#include "loader/find.h"
#include "platform/path.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using platform::text_of;

struct Arguments {
  std::string name, language = "c";
  fs::path out = ".";
};

/// A file of the project, and its template under share/tenon.
struct File {
  const char* from;
  const char* to;
  const char* placeholder;  ///< replaced by the backend's name in the text and in `to`
};
struct Language {
  const char* name;
  const char* description;
  std::vector<File> files;
};

const std::array<Language, 2>& languages() {
  static const std::array<Language, 2> all{{{"c",
                                             "one file of plain C",
                                             // This is the template that the tests build and run, so it cannot become outdated.
                                             {{"template/template.c", "template.c", "template"},
                                              {"template/conformance.yaml", "conformance.yaml", "template"},
                                              {"new_backend/c/CMakeLists.txt", "CMakeLists.txt", "my_backend"},
                                              {"new_backend/c/README.md", "README.md", "my_backend"}}},
                                            {"cpp",
                                             "kernels in C++ files, with the SDK",
                                             {{"new_backend/cpp/backend.cpp", "backend.cpp", "my_backend"},
                                              {"new_backend/cpp/ops/unary.cpp", "ops/unary.cpp", "my_backend"},
                                              {"new_backend/cpp/CMakeLists.txt", "CMakeLists.txt", "my_backend"},
                                              {"new_backend/cpp/conformance.yaml", "conformance.yaml", "my_backend"},
                                              {"new_backend/cpp/README.md", "README.md", "my_backend"}}}}};
  return all;
}

/// Names with another meaning where a backend's name is expected.
constexpr std::array reserved_names{"auto", "cpu", "gpu", "sdk"};

void check_name(const std::string& name) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool good = !name.empty() && small(name[0]) &&
                    std::all_of(name.begin(), name.end(), [&](char c) { return small(c) || (c >= '0' && c <= '9') || c == '_'; });
  if (!good) {
    throw Error(
        Status::invalid_argument,
        fmt::format(
            "new-backend: invalid backend name '{}': expected lower-case letters, digits and _, starting with a letter, for example "
            "'my_npu'",
            name));
  }
  if (std::find(reserved_names.begin(), reserved_names.end(), name) != reserved_names.end())
    throw Error(Status::invalid_argument, fmt::format("new-backend: '{}' is a reserved name: choose another name", name));
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    throw Error(
        Status::device_not_found,
        fmt::format("new-backend: cannot read the template {}: run the `tenon` of a build tree or of an installed tree", text_of(file)));
  }
  return text.str();
}

void write(const fs::path& file, const std::string& text) {
  std::error_code failure;
  if (fs::create_directories(file.parent_path(), failure); failure) {
    throw Error(fmt::format("new-backend: folder {} cannot be created: {}; choose another one with --out", text_of(file.parent_path()),
                            failure.message()));
  }
  io::write_atomically(text_of(file), text);
}

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size()) text.replace(at, word.size(), by);
  return text;
}

/// Quotes a word of a shell command line.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("/._-+:=@%,").find(c) != std::string_view::npos;
  });
  return plain ? word : "'" + replaced(word, "'", "'\\''") + "'";
}

void run_new_backend(const Arguments& arguments) {
  check_name(arguments.name);
  const auto language =
      std::find_if(languages().begin(), languages().end(), [&](const Language& l) { return arguments.language == l.name; });
  const fs::path folder = (arguments.out / arguments.name).lexically_normal();
  if (fs::exists(folder)) {
    throw Error(Status::invalid_argument,
                fmt::format("new-backend: {} already exists: remove it, or choose another folder with --out", text_of(folder)));
  }

  const fs::path prefix = installation_prefix(), share = prefix / "share" / "tenon";
  std::vector<std::pair<fs::path, std::string>> files;  // everything is read before anything is written
  for (const File& file : language->files) {
    files.emplace_back(folder / replaced(file.to, file.placeholder, arguments.name),
                       replaced(content_of(share / file.from), file.placeholder, arguments.name));
  }
  std::string listed;
  for (const auto& [file, text] : files) {
    write(file, text);
    listed += (listed.empty() ? "" : ", ") + text_of(file.lexically_relative(folder));
  }

  const fs::path build = folder / "build", library = build / loader::backend_file_name(arguments.name);
  const std::string tenon = quoted(text_of(prefix / "bin" / "tenon")), plugin = quoted(text_of(library));
  print(fmt::format("{}: a backend as {}: {}\n\nBuild it, check that it loads, run the conformance kit:\n\n", text_of(folder),
                    language->description, listed));
  print(fmt::format("  cmake -S {} -B {} -DCMAKE_PREFIX_PATH={}\n", quoted(text_of(folder)), quoted(text_of(build)),
                    quoted(text_of(prefix))));
  print(fmt::format("  cmake --build {}\n", quoted(text_of(build))));
  print(fmt::format("  {} doctor --plugin {}\n", tenon, plugin));
  print(fmt::format("  {} conformance --plugin {} --profile core\n", tenon, plugin));
  print(fmt::format("  {} conformance --plugin {}\n", tenon, plugin));
  print(fmt::format("\nThe next steps are in {}.\n", text_of(folder / "README.md")));
}

}  // namespace

void add_new_backend_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("new-backend", "write the first files of a backend, which build, load and pass the conformance kit");
  command->add_option("name", arguments->name, "name of the backend: lower-case letters, digits and _")->required()->type_name("NAME");
  std::vector<std::string> names;
  for (const Language& language : languages()) names.emplace_back(language.name);
  command->add_option("--language", arguments->language, "c: one file, only the C header; cpp: kernels in C++ files, with the SDK")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  add_path(*command, "--out", arguments->out, "parent folder of the project")->type_name("DIR")->default_str(text_of(arguments->out));
  command->callback([arguments] { run_new_backend(*arguments); });
}

}  // namespace tenon::cli
