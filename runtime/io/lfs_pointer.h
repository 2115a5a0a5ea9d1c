// SPDX-License-Identifier: Apache-2.0
// io/lfs_pointer.h - the text that is in the place of a file which Git LFS has not fetched.
#pragma once

#include <string_view>

namespace tenon::io {

/// How such a text begins.
///
/// Source  Git LFS: docs/spec.md, "The Pointer".
inline constexpr std::string_view lfs_pointer_prefix = "version https://git-lfs.github.com/";

inline bool is_lfs_pointer(std::string_view content) {
  return content.starts_with(lfs_pointer_prefix);
}

/// The end of a sentence "expected ...".
inline constexpr std::string_view got_lfs_pointer = "got a pointer of Git LFS; `git lfs pull` fetches the file itself";

}  // namespace tenon::io
