// SPDX-License-Identifier: Apache-2.0
#include "platform/file_facts.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace tenon::platform {
namespace {

std::string user_name(uid_t user) {
  char text[1024];
  passwd entry{}, *found = nullptr;
  if (getpwuid_r(user, &entry, text, sizeof text, &found) != 0 || found == nullptr) return "user " + std::to_string(user);
  return std::string("user '") + found->pw_name + "'";
}

}  // namespace

std::filesystem::file_time_type write_time(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_time_type time = std::filesystem::last_write_time(file, error);
  return error ? std::filesystem::file_time_type::min() : time;
}

std::string file_stamp(const std::filesystem::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  char text[128];
  std::snprintf(text, sizeof text, "%lld %lld.%09ld %lld.%09ld", static_cast<long long>(status.st_size),
                static_cast<long long>(status.st_mtim.tv_sec), status.st_mtim.tv_nsec, static_cast<long long>(status.st_ctim.tv_sec),
                status.st_ctim.tv_nsec);
  return text;
}

FileAccess file_access(const std::filesystem::path& path) {
  FileAccess access;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return access;
  access.everyone_writes = (status.st_mode & S_IWOTH) != 0;
  access.only_adds = (status.st_mode & S_ISVTX) != 0;
  if (status.st_uid != 0 && status.st_uid != geteuid()) access.foreign_owner = user_name(status.st_uid);
  return access;
}

std::string command_to_forbid_writing(const std::filesystem::path& path) {
  return "chmod o-w " + path.native();
}

std::string command_to_take_over(const std::filesystem::path& path) {
  return geteuid() == 0 ? "chown root " + path.native() : "";
}

}  // namespace tenon::platform
