// SPDX-License-Identifier: Apache-2.0
#include "loader/probe_answers.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <system_error>

#include "platform/file_facts.h"
#include "platform/path.h"
#include "platform/replacement_file.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t failure_is_kept_seconds = 3600;

/// The name of the answer's file: the plugin's own name for people, and a hash of its path (FNV-1a).
fs::path answer_file(const fs::path& folder, const fs::path& file) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : platform::text_of(file)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return folder / platform::path_of(fmt::format("{}-{:016x}", platform::text_of(file.stem()), hash));
}

/// An answer and what it is about. The file has a line for each member, `output` last.
struct Entry {
  std::string core, file, stamp, sha256, seconds, reached, text, output;
};

std::optional<Entry> read_entry(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  Entry entry;
  for (std::string* line : {&entry.core, &entry.file, &entry.stamp, &entry.sha256, &entry.seconds, &entry.reached, &entry.text}) {
    if (!std::getline(stream, *line)) return std::nullopt;
  }
  entry.output.assign(std::istreambuf_iterator<char>(stream), {});
  return entry;
}

/// A reader never sees half an answer.
void write_entry(const fs::path& path, const Entry& entry) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", entry.core, entry.file, entry.stamp, entry.sha256, entry.seconds,
                                       entry.reached, entry.text, entry.output);
  platform::ReplacementFile file;
  if (file.open_folder(platform::text_of(path.parent_path()), platform::text_of(path.filename())) || file.create()) return;
  for (std::size_t written = 0; written < text.size();) {
    std::uint64_t n = 0;
    if (file.file().write(text.data() + written, text.size() - written, n)) return;
    written += static_cast<std::size_t>(n);
  }
  if (!file.name()) static_cast<void>(file.replace(false));
}

}  // namespace

std::optional<ProbeAnswer> known_answer(const fs::path& folder, const fs::path& file) {
  if (folder.empty()) return std::nullopt;
  const fs::path path = answer_file(folder, file);
  std::optional<Entry> entry = read_entry(path);
  if (!entry || entry->core != host_info().build_id || entry->file != platform::text_of(file)) return std::nullopt;
  const std::int64_t age = std::time(nullptr) - std::strtoll(entry->seconds.c_str(), nullptr, 10);
  if (!entry->text.empty() && (age < 0 || age > failure_is_kept_seconds)) return std::nullopt;
  if (const std::string stamp = platform::file_stamp(file); stamp != entry->stamp) {
    if (checksum(file) != entry->sha256) return std::nullopt;
    entry->stamp = stamp;
    write_entry(path, *entry);
  }
  return ProbeAnswer{entry->text, static_cast<Stage>(std::strtol(entry->reached.c_str(), nullptr, 10)), entry->output};
}

void keep_answer(const fs::path& folder, const fs::path& file, const ProbeAnswer& answer) {
  if (folder.empty()) return;
  // The stamp comes first: a file that is replaced meanwhile does not match it.
  const std::string stamp = platform::file_stamp(file), sha256 = checksum(file);
  if (stamp.empty() || sha256.empty()) return;
  write_entry(answer_file(folder, file), {host_info().build_id, platform::text_of(file), stamp, sha256, std::to_string(std::time(nullptr)),
                                          std::to_string(static_cast<int>(answer.reached)), answer.text, answer.output});
}

}  // namespace tenon::loader
