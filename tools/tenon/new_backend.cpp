// tenon new-backend: the first files of a backend, in a folder of their own, and the commands that build and judge it.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/error.h>

#include "tenon/output.h"
#include "tenon/verbs.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string name, language = "c";
  fs::path out = ".";
};

/// A file of the project, and the one under share/tenon that it is made of.
struct File {
  const char* from;
  const char* to;
  const char* placeholder;  ///< the word in it, and in `to`, that stands for the backend's name
};
struct Language {
  const char* name;
  const char* words;
  std::vector<File> files;
  /// Whether the files serve the op of this stem and room.
  bool (*offers)(const std::string& stem, const std::string& room);
};

constexpr const char* waivers = "conformance.yaml";

const std::array<Language, 2>& languages() {
  static const std::array<Language, 2> all{{{"c",
                                             "one file of plain C",
                                             // The template that the tests build and judge is the project's source: it cannot fall behind.
                                             {{"template/template.c", "template.c", "template"},
                                              {"new_backend/c/CMakeLists.txt", "CMakeLists.txt", "my_backend"},
                                              {"new_backend/c/conformance.yaml", waivers, "my_backend"},
                                              {"new_backend/c/README.md", "README.md", "my_backend"}},
                                             [](const std::string& stem, const std::string&) { return stem == "add" || stem == "relu"; }},
                                            {"cpp",
                                             "kernels in C++ files, on the SDK",
                                             {{"new_backend/cpp/backend.cpp", "backend.cpp", "my_backend"},
                                              {"new_backend/cpp/ops/unary.cpp", "ops/unary.cpp", "my_backend"},
                                              {"new_backend/cpp/CMakeLists.txt", "CMakeLists.txt", "my_backend"},
                                              {"new_backend/cpp/conformance.yaml", waivers, "my_backend"},
                                              {"new_backend/cpp/README.md", "README.md", "my_backend"}},
                                             [](const std::string&, const std::string& room) { return room == "unary"; }}}};
  return all;
}

/// Names that mean something else where a backend's name stands.
constexpr std::array taken{"auto", "cpu", "gpu", "sdk"};

void check_name(const std::string& name) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool good = !name.empty() && small(name[0]) &&
                    std::all_of(name.begin(), name.end(), [&](char c) { return small(c) || (c >= '0' && c <= '9') || c == '_'; });
  if (!good) {
    throw Error(
        Status::invalid_argument,
        fmt::format("new-backend: '{}' is no name for a backend: wanted small letters, digits and _, a letter first, as in 'my_npu'; it "
                    "becomes the part before ':' in 'my_npu:0'",
                    name));
  }
  if (std::find(taken.begin(), taken.end(), name) != taken.end())
    throw Error(Status::invalid_argument, fmt::format("new-backend: '{}' has a meaning of its own in Tenon: choose another name", name));
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    throw Error(
        Status::device_not_found,
        fmt::format("new-backend: wanted {} to start from, and it cannot be read; run the `tenon` of a build tree or of a tree that "
                    "`cmake --install` laid out",
                    file.string()));
  }
  return text.str();
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error(Status::internal, fmt::format("new-backend: {} cannot be written", file.string()));
}

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size()) text.replace(at, word.size(), by);
  return text;
}

/// Lines of conformance.yaml for all that a first backend does not have: every op but those it offers, every BLAS routine.
std::string what_is_left(const Language& language) {
  std::string text;
  std::set<std::string> there;  // gemm is an op and a routine
  const auto line = [&](const std::string& match, const char* reason) {
    if (there.insert(match).second) text += fmt::format("  - {{match: \"{}\", reason: \"{}\"}}\n", match, reason);
  };
#define TENON_OP(id, op, version, stem, room, type_operand, dtypes, attributes, schema) \
  if (!language.offers(#stem, #room)) line(#stem "/*", "not written yet");
#include <tenon/ops.def>
#undef TENON_OP
#define TENON_BLAS(id, routine, level, signature, dtypes) line(#routine "/*", "not written yet");
#include <tenon/blas.def>
#undef TENON_BLAS
  return text;
}

/// A word of a shell's command line.
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
    throw Error(
        Status::invalid_argument,
        fmt::format("new-backend: {} is there already and stays as it is: wanted a new folder; remove it, or name another with --out",
                    folder.string()));
  }

  const fs::path prefix = installation_prefix(), share = prefix / "share" / "tenon";
  std::vector<std::pair<fs::path, std::string>> files;  // all is read before anything is written
  for (const File& file : language->files) {
    std::string text = replaced(text_of(share / file.from), file.placeholder, arguments.name);
    if (file.to == std::string(waivers)) text += what_is_left(*language);
    files.emplace_back(folder / replaced(file.to, file.placeholder, arguments.name), std::move(text));
  }
  std::string listed;
  for (const auto& [file, text] : files) {
    write(file, text);
    listed += (listed.empty() ? "" : ", ") + file.lexically_relative(folder).string();
  }

  const fs::path build = folder / "build", library = build / fmt::format("libtenon_backend_{}.so", arguments.name);
  const std::string tenon = quoted((prefix / "bin" / "tenon").string()), plugin = quoted(library.string());
  print(fmt::format("{}: a backend as {}: {}\n\nBuild it, see that it loads, ask for its proof:\n\n", folder.string(), language->words,
                    listed));
  print(fmt::format("  cmake -S {} -B {} -DCMAKE_PREFIX_PATH={}\n", quoted(folder.string()), quoted(build.string()),
                    quoted(prefix.string())));
  print(fmt::format("  cmake --build {}\n", quoted(build.string())));
  print(fmt::format("  {} doctor --plugin {}\n", tenon, plugin));
  print(fmt::format("  {} conformance --plugin {} --profile core\n", tenon, plugin));
  print(fmt::format("  {} conformance --plugin {}\n", tenon, plugin));
  print(fmt::format("\n{} tells how to go on.\n", (folder / "README.md").string()));
}

}  // namespace

void add_new_backend_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("new-backend", "write the first files of a backend: they build, load and pass what they declare");
  command->add_option("name", arguments->name, "the backend's name: small letters, digits and _")->required()->type_name("NAME");
  std::vector<std::string> names;
  for (const Language& language : languages()) names.emplace_back(language.name);
  command->add_option("--language", arguments->language, "c: one file, the header alone; cpp: kernels in files, on the SDK")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("--out", arguments->out, "folder in which the project's folder is made")->type_name("DIR")->capture_default_str();
  command->callback([arguments] { run_new_backend(*arguments); });
}

}  // namespace tenon::cli
