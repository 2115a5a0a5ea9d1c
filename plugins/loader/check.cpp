// SPDX-License-Identifier: Apache-2.0
#include "loader/check.h"

#include <fmt/format.h>

#include <system_error>

#include "loader/image.h"
#include "loader/load_error.h"
#include "loader/loader.h"
#include "loader/negotiate.h"
#include "platform/conventions.h"
#include "platform/file.h"
#include "platform/file_facts.h"
#include "platform/path.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

void check_kind(const BinaryImage& image) {
  const bool elf = platform::conventions().format == platform::BinaryFormat::elf;
  const char* const expected = elf ? "an ELF shared object" : "a Windows DLL";
  const std::string rebuild = fmt::format("put a backend built for {} there", host_info().platform);
  if (elf && image.format == BinaryImage::Format::pe) {
    throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is a Windows library, expected {}", expected), rebuild);
  }
  if (!elf && image.format == BinaryImage::Format::elf) {
    throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is an ELF file, as Linux has them, expected {}", expected), rebuild);
  }
  switch (image.kind) {
    case BinaryImage::Kind::shared_library:
      break;
    case BinaryImage::Kind::empty:
      throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is empty, expected {}", expected), "copy or build it again");
    case BinaryImage::Kind::not_an_image:
      throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is not a library: it does not begin as {} does", expected), rebuild);
    case BinaryImage::Kind::other_kind:
      throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is {}, expected {}", image.fault, expected),
                      elf ? "link it as a shared library (-shared -fPIC)" : "link it as a DLL (-shared, with Microsoft's linker /DLL)");
    case BinaryImage::Kind::damaged:
      throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is damaged: {}", image.fault), "copy or build it again");
  }
  if (!is_for_own_machine(image)) {
    throw LoadError(
        TENON_INCOMPATIBLE,
        fmt::format("the file is for another machine: expected 64-bit little-endian {}, got {}-bit {}-endian {}", own_machine_name(),
                    image.is_64_bit ? 64 : 32, image.is_little_endian ? "little" : "big", machine_name(image)),
        rebuild);
  }
}

}  // namespace

void check_writers(const fs::path& file, bool named) {
  const auto refuse = [](const char* what, const fs::path& path) {
    throw LoadError(TENON_INVALID_ARGUMENT,
                    fmt::format("every user may write to the {} {}: anyone can put code there that this process would run", what,
                                platform::text_of(path)),
                    platform::command_to_forbid_writing(path));
  };
  if (platform::file_access(file).everyone_writes) refuse("file", file);
  const platform::FileAccess folder = platform::file_access(file.parent_path());
  if (folder.everyone_writes && !(named && folder.only_adds)) refuse("folder", file.parent_path());
}

std::vector<std::string> exposures_of(const fs::path& file) {
  std::vector<std::string> exposures;
  const auto check = [&](const char* what, const fs::path& path) {
    const std::string owner = platform::file_access(path).foreign_owner;
    if (owner.empty()) return;
    const std::string command = platform::command_to_take_over(path);
    exposures.push_back(fmt::format("the {} {} belongs to {}, who can put code there that this process runs ({})", what,
                                    platform::text_of(path), owner, command.empty() ? "use a copy of your own" : command));
  };
  check("file", file);
  check("folder", file.parent_path());
  return exposures;
}

void check_readable(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) {
    const bool dangling = fs::is_symlink(fs::symlink_status(file, error));
    throw LoadError(TENON_INVALID_ARGUMENT, dangling ? "the file is a symbolic link to nothing" : "there is no such file",
                    "correct the path, or install the backend there");
  }
  if (status.type() == fs::file_type::directory) {
    throw LoadError(TENON_INVALID_ARGUMENT, "it is a folder, expected a file", "correct the path");
  }
  // Opening a named pipe would wait for its other end.
  if (!error && status.type() != fs::file_type::regular) {
    throw LoadError(TENON_INVALID_ARGUMENT, "it is a device, a pipe or a socket, expected a file", "correct the path");
  }
  if (const auto failure = platform::open_input(platform::text_of(file)).error) {
    throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file cannot be read: {}", platform::message_of(failure)),
                    "give this user permission to read it");
  }
}

std::uint32_t sanitizer_of(const std::vector<std::string>& needed) {
  for (const std::string& name : needed) {
    if (name.find("libasan") == 0 || name.find("clang_rt.asan") != std::string::npos) return TENON_SANITIZER_ADDRESS;
    if (name.find("libtsan") == 0 || name.find("clang_rt.tsan") != std::string::npos) return TENON_SANITIZER_THREAD;
    if (name.find("clang_rt.msan") != std::string::npos) return TENON_SANITIZER_MEMORY;
  }
  return TENON_SANITIZER_NONE;
}

void check_library(const fs::path& file) {
  const BinaryImage image = read_image(file);
  check_kind(image);
  check_sanitizers(host_info().sanitizer, sanitizer_of(image.needed));
}

}  // namespace tenon::loader
