// SPDX-License-Identifier: Apache-2.0
// io/mapped_file.h - a file as read-only memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "platform/mapping.h"

namespace tenon::io {

/// A regular file, mapped privately: pages are read when they are used. A file that is made shorter while it is mapped ends the process
/// where its lost part is read (SIGBUS); one that is replaced by renaming is not affected.
class MappedFile {
 public:
  /// Errors  those of open_for_reading; it cannot be mapped.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// The content of a file that is in memory already.
  static std::shared_ptr<const MappedFile> of(std::string content);

  /// The content, empty for an empty file.
  std::string_view bytes() const {
    return mapping_.address() != nullptr ? std::string_view(reinterpret_cast<const char*>(mapping_.address()), mapping_.size_bytes())
                                         : std::string_view(content_);
  }
  /// Lets the system take the pages back until they are read again: what was read of them no longer counts as memory of the process.
  void release_pages() const { mapping_.release_pages(); }

 private:
  MappedFile(platform::Mapping mapping, std::string content) : mapping_(std::move(mapping)), content_(std::move(content)) {}
  platform::Mapping mapping_;  ///< none: the content is in memory of its own, or there is none
  std::string content_;
};

}  // namespace tenon::io
