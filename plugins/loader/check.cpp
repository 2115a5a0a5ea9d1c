// SPDX-License-Identifier: Apache-2.0
#include "loader/check.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "loader/elf.h"
#include "loader/load_error.h"
#include "loader/loader.h"
#include "loader/negotiate.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

void check_kind(const Elf& elf) {
  const std::string rebuild = fmt::format("put a backend built for linux-{} there", machine_name(own_machine()));
  switch (elf.kind) {
    case Elf::Kind::shared_object:
      break;
    case Elf::Kind::empty:
      throw LoadError(TENON_INVALID_ARGUMENT, "the file is empty, expected an ELF shared object", "copy or build it again");
    case Elf::Kind::windows_library:
      throw LoadError(TENON_INVALID_ARGUMENT, "the file is a Windows library, expected an ELF shared object", rebuild);
    case Elf::Kind::not_elf:
      throw LoadError(TENON_INVALID_ARGUMENT, "the file is not a library: it does not begin as an ELF shared object does", rebuild);
    case Elf::Kind::other_kind:
      throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is {}, expected an ELF shared object", elf.fault),
                      "link it as a shared library (-shared -fPIC)");
    case Elf::Kind::damaged:
      throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file is damaged: {}", elf.fault), "copy or build it again");
  }
  if (!elf.is_64_bit || !elf.is_little_endian || elf.machine != own_machine()) {
    throw LoadError(TENON_INCOMPATIBLE,
                    fmt::format("the file is for another machine: expected 64-bit little-endian {}, got {}-bit {}-endian {}",
                                machine_name(own_machine()), elf.is_64_bit ? 64 : 32, elf.is_little_endian ? "little" : "big",
                                machine_name(elf.machine)),
                    rebuild);
  }
}

std::string user_name(uid_t user) {
  char text[1024];
  passwd entry{}, *found = nullptr;
  if (getpwuid_r(user, &entry, text, sizeof text, &found) != 0 || found == nullptr) return fmt::format("user {}", user);
  return fmt::format("user '{}'", found->pw_name);
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) status.st_uid = 0;
  return status;
}

}  // namespace

void check_writers(const fs::path& file, bool named) {
  const fs::path folder = file.parent_path();
  const auto refuse = [](const char* what, const fs::path& path) {
    throw LoadError(
        TENON_INVALID_ARGUMENT,
        fmt::format("every user may write to the {} {}: anyone can put code there that this process would run", what, path.string()),
        fmt::format("chmod o-w {}", path.string()));
  };
  if ((status_of(file).st_mode & S_IWOTH) != 0) refuse("file", file);
  const mode_t mode = status_of(folder).st_mode;
  const bool harmless = named && (mode & S_ISVTX) != 0;
  if ((mode & S_IWOTH) != 0 && !harmless) refuse("folder", folder);
}

std::vector<std::string> exposures_of(const fs::path& file) {
  std::vector<std::string> exposures;
  const auto check = [&](const char* what, const fs::path& path) {
    const uid_t owner = status_of(path).st_uid;
    if (owner == 0 || owner == geteuid()) return;
    const std::string remedy = geteuid() == 0 ? "chown root " + path.string() : "use a copy of your own";
    exposures.push_back(fmt::format("the {} {} belongs to {}, who can put code there that this process runs ({})", what, path.string(),
                                    user_name(owner), remedy));
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
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (!opened) {
    throw LoadError(TENON_INVALID_ARGUMENT, fmt::format("the file cannot be read: {}", std::strerror(errno)),
                    "give this user permission to read it");
  }
}

std::uint32_t sanitizer_of(const std::vector<std::string>& needed) {
  for (const std::string& name : needed) {
    if (name.find("libasan") == 0 || name.find("libclang_rt.asan") == 0) return TENON_SANITIZER_ADDRESS;
    if (name.find("libtsan") == 0 || name.find("libclang_rt.tsan") == 0) return TENON_SANITIZER_THREAD;
    if (name.find("libclang_rt.msan") == 0) return TENON_SANITIZER_MEMORY;
  }
  return TENON_SANITIZER_NONE;
}

void check_library(const fs::path& file) {
  const Elf elf = read_elf(file);
  check_kind(elf);
  check_sanitizers(host_info().sanitizer, sanitizer_of(elf.needed));
}

}  // namespace tenon::loader
