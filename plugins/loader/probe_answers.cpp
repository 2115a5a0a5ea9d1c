// SPDX-License-Identifier: Apache-2.0
#include "loader/probe_answers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t failure_is_kept_seconds = 3600;

/// Size and dates of a file: what changes, as far as the file system can tell, when its bytes do. Empty if the file is gone.
std::string stamp_of(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  return fmt::format("{} {}.{:09} {}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

/// The name of the answer's file: the plugin's own name for people, and a hash of its path (FNV-1a).
fs::path answer_file(const fs::path& folder, const fs::path& file) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : file.string()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return folder / fmt::format("{}-{:016x}", file.stem().string(), hash);
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

/// Writes beside the file and renames, so that a reader never sees half an answer.
void write_entry(const fs::path& path, const Entry& entry) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::string temporary = path.string() + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) return;
  const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", entry.core, entry.file, entry.stamp, entry.sha256, entry.seconds,
                                       entry.reached, entry.text, entry.output);
  const bool written = write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(descriptor) != 0 || !written || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace

std::optional<ProbeAnswer> known_answer(const fs::path& folder, const fs::path& file) {
  if (folder.empty()) return std::nullopt;
  const fs::path path = answer_file(folder, file);
  std::optional<Entry> entry = read_entry(path);
  if (!entry || entry->core != host_info().build_id || entry->file != file.string()) return std::nullopt;
  const std::int64_t age = std::time(nullptr) - std::strtoll(entry->seconds.c_str(), nullptr, 10);
  if (!entry->text.empty() && (age < 0 || age > failure_is_kept_seconds)) return std::nullopt;
  if (const std::string stamp = stamp_of(file); stamp != entry->stamp) {
    if (checksum(file) != entry->sha256) return std::nullopt;
    entry->stamp = stamp;
    write_entry(path, *entry);
  }
  return ProbeAnswer{entry->text, static_cast<Stage>(std::strtol(entry->reached.c_str(), nullptr, 10)), entry->output};
}

void keep_answer(const fs::path& folder, const fs::path& file, const ProbeAnswer& answer) {
  if (folder.empty()) return;
  // The stamp comes first: a file that is replaced meanwhile does not match it.
  const std::string stamp = stamp_of(file), sha256 = checksum(file);
  if (stamp.empty() || sha256.empty()) return;
  write_entry(answer_file(folder, file), {host_info().build_id, file.string(), stamp, sha256, std::to_string(std::time(nullptr)),
                                          std::to_string(static_cast<int>(answer.reached)), answer.text, answer.output});
}

}  // namespace tenon::loader
