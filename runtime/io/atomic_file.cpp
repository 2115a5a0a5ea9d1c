// SPDX-License-Identifier: Apache-2.0
// io/atomic_file.cpp - temporary file, flush, rename, flush of the folder.
#include "io/atomic_file.h"

#include <cstddef>
#include <filesystem>
#include <utility>

#include <tenon/error.h>

#include "io/output_target.h"
#include "platform/path.h"

namespace tenon::io {

AtomicFile::AtomicFile(const std::string& path) {
  OutputTarget target = find_output(path);
  path_ = target.path;
  if (target.in_place) {
    is_in_place_ = true;
    in_place_ = std::move(target.in_place);
    return;
  }
  const std::filesystem::path whole = platform::path_of(path_);
  const std::string folder = whole.has_parent_path() ? platform::text_of(whole.parent_path()) : ".";
  const std::string name = platform::text_of(whole.filename());
  if (name.empty()) throw Error(path + ": cannot be written: expected the name of a file");
  if (const std::error_code error = replacement_.open_folder(folder, name)) {
    const bool missing = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
    throw Error(path + ": cannot be written: folder " + folder + (missing ? " does not exist" : ": " + platform::message_of(error)));
  }
  if (const std::error_code error = replacement_.create()) throw Error(path_ + ": cannot be written: " + platform::message_of(error));
}

void AtomicFile::fail(const std::string& what, const std::error_code& error, std::uint64_t missing_bytes) {
  replacement_.discard();
  static_cast<void>(file().close());
  std::string text = path_ + ": " + what + ": " + platform::message_of(error) + " after " + std::to_string(written_bytes_) + " bytes";
  if (missing_bytes > 0) text += ", " + std::to_string(missing_bytes) + " more expected";
  if (!is_in_place_) text += "; the previous file is unchanged";
  if (platform::is_out_of_space(error)) text += "; free some space or choose another folder";
  throw Error(text);
}

void AtomicFile::write(const void* bytes, std::uint64_t size_bytes) {
  if (!file()) throw Error(Status::internal, path_ + ": write after commit");
  const auto* from = static_cast<const std::byte*>(bytes);
  while (size_bytes > 0) {
    std::uint64_t put = 0;
    if (const std::error_code error = file().write(from, size_bytes, put)) fail("cannot be written", error, size_bytes);
    from += put;
    size_bytes -= put;
    written_bytes_ += put;
  }
}

void AtomicFile::commit(Durability durability) {
  const bool synced = durability == Durability::synced;
  if (!file()) throw Error(Status::internal, path_ + ": committed twice");
  if (!is_in_place_) {
    if (const std::error_code error = synced ? file().flush() : std::error_code()) fail("cannot be flushed to disk", error, 0);
    if (const std::error_code error = replacement_.name()) fail("cannot be named", error, 0);
    if (const std::error_code error = replacement_.replace(synced)) fail("cannot be replaced", error, 0);
  }
  if (const std::error_code error = file().close()) {
    throw Error(path_ + ": written, but the system reported an error when it was closed: " + platform::message_of(error));
  }
}

void write_atomically(const std::string& path, std::string_view content, Durability durability) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit(durability);
}

}  // namespace tenon::io
