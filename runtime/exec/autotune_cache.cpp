// SPDX-License-Identifier: Apache-2.0
#include "exec/autotune_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <system_error>

#include <tenon/error.h>

#include "core/log.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/input_file.h"
#include "platform/path.h"
#include "yaml/json.h"

namespace tenon::exec {
namespace {

constexpr int format = 1;
constexpr std::uint64_t max_file_size_bytes = 16 << 20;

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::vector<unsigned char> bytes_of(const std::string& text) {
  if (text.size() % 2 != 0) throw Error("a value has an odd number of digits");
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto digit = [&](char c) {
      const std::size_t position = std::string_view("0123456789abcdef").find(c);
      if (position == std::string_view::npos) throw Error("a value is not hexadecimal");
      return static_cast<unsigned>(position);
    };
    bytes.push_back(static_cast<unsigned char>(digit(text[i]) << 4 | digit(text[i + 1])));
  }
  return bytes;
}

std::string checksum_of(const Json& entries) {
  io::Crc32 sum;
  const std::string text = json_text(entries);
  sum.add(text.data(), text.size());
  return fmt::format("{:08x}", sum.value());
}

std::string text_of_file(const std::filesystem::path& path) {
  const io::OpenFile file = io::open_for_reading(platform::text_of(path));
  if (file.size_bytes > max_file_size_bytes)
    throw Error(fmt::format("it has {} bytes, expected at most {}", file.size_bytes, max_file_size_bytes));
  std::string text(file.size_bytes, '\0');
  io::read_exactly(file.file, platform::text_of(path), text.data(), text.size());
  return text;
}

}  // namespace

/// The entries of the file, none if there is no file or it is of another build or format; nullopt if the file is damaged.
std::optional<AutotuneCache::Entries> AutotuneCache::read() const {
  Entries result;
  std::error_code error;
  if (file_.empty() || !std::filesystem::exists(file_, error)) return result;
  try {
    const Json file = parse_json(text_of_file(file_));
    if (file.at("format") != format || file.at("build") != build_) return result;
    const Json& entries = file.at("entries");
    const std::string expected = checksum_of(entries), given = file.at("checksum");
    if (expected != given) throw Error(fmt::format("expected the checksum {}, got {}", expected, given));
    for (const auto& [key, value] : entries.items()) result[key] = bytes_of(value.get<std::string>());
    return result;
  } catch (const std::exception& problem) {
    log::warning("the measurements in {} are damaged ({}): the file is removed, and the backend measures again", platform::text_of(file_),
                 problem.what());
    std::filesystem::remove(file_, error);
    return std::nullopt;
  }
}

AutotuneCache::Entries& AutotuneCache::entries() {
  if (!entries_) entries_ = read().value_or(Entries{});
  return *entries_;
}

void AutotuneCache::write() {
  if (file_.empty()) return;
  // What other processes have measured since stays; of two values for one key ours is the later one.
  Entries merged = read().value_or(Entries{});
  for (const auto& [key, value] : entries()) merged[key] = value;
  Json values = Json::object();
  for (const auto& [key, value] : merged) values[key] = hex(value);
  try {
    std::filesystem::create_directories(file_.parent_path());
    const Json file = {{"format", format}, {"build", build_}, {"checksum", checksum_of(values)}, {"entries", values}};
    io::write_atomically(platform::text_of(file_), json_text(file, 1) + "\n", io::Durability::until_crash);
  } catch (const std::exception& problem) {
    log::warning("measurements are not kept for later runs: {}", problem.what());
    file_.clear();
  }
}

std::uint64_t AutotuneCache::get(const std::string& key, void* out_value, std::uint64_t capacity_bytes) {
  const std::lock_guard lock(mutex_);
  const Entries& known = entries();
  const auto found = known.find(key);
  if (found == known.end()) return 0;
  std::memcpy(out_value, found->second.data(), std::min<std::uint64_t>(capacity_bytes, found->second.size()));
  return found->second.size();
}

void AutotuneCache::put(const std::string& key, std::span<const unsigned char> value) {
  const std::lock_guard lock(mutex_);
  std::vector<unsigned char>& entry = entries()[key];
  if (entry.size() == value.size() && std::equal(value.begin(), value.end(), entry.begin())) return;
  entry.assign(value.begin(), value.end());
  write();
}

}  // namespace tenon::exec
