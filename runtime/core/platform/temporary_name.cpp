// SPDX-License-Identifier: Apache-2.0
#include "platform/temporary_name.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <random>
#include <system_error>

#include "platform/folder.h"
#include "platform/path.h"

namespace tenon::platform {
namespace {

constexpr const char* digits = "0123456789abcdef";
constexpr std::size_t digit_count = 16;
constexpr const char* ending = ".tmp";

/// Names have at most 255 bytes.
std::string beginning_of(const std::string& name) {
  std::size_t length = 200;
  if (name.size() <= length) {
    length = name.size();
  } else {
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0u) == 0x80u) --length;  // whole characters of UTF-8
  }
  return "." + name.substr(0, length) + ".";
}

}  // namespace

std::string temporary_name(const std::string& name) {
  std::string result = beginning_of(name);
  std::random_device random;
  for (std::size_t word = 0; word < digit_count / 8; ++word) {
    for (unsigned bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4) result += digits[bits & 15u];
  }
  return result + ending;
}

void remove_old_temporaries(const std::string& folder, const std::string& name) {
  const std::string beginning = beginning_of(name);
  const auto newest = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code ignored;
  for (const FolderEntry& entry : entries_of(folder, ignored)) {
    if (!entry.name.starts_with(beginning) || !entry.name.ends_with(ending)) continue;
    const std::string between = entry.name.substr(beginning.size(), entry.name.size() - beginning.size() - 4);
    if (between.size() != digit_count || between.find_first_not_of(digits) != std::string::npos) continue;
    const std::filesystem::path path = path_of(folder) / path_of(entry.name);
    if (std::filesystem::last_write_time(path, ignored) < newest) std::filesystem::remove(path, ignored);
  }
}

}  // namespace tenon::platform
