// SPDX-License-Identifier: Apache-2.0
// loader/check.h - checks of a file before it is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::loader {

/// Throws a LoadError unless the file exists and may be read.
void check_readable(const std::filesystem::path& file);

/// Throws a LoadError unless the file is a complete library that this machine and process can open.
void check_library(const std::filesystem::path& file);

/// Throws a LoadError if every user may put code into the file or its folder. In a sticky folder (/tmp) others cannot replace a file but
/// can add one, which matters unless the file itself was `named`. On Windows: by the access control list's entries for Everyone; those for
/// all users of the machine, which each folder below the root of a disk has, are not counted.
void check_writers(const std::filesystem::path& file, bool named);

/// Whether the file or its folder belongs to a user who is neither this one nor root: a sentence for each.
std::vector<std::string> exposures_of(const std::filesystem::path& file);

/// The sanitizer in a needed-list (TENON_SANITIZER_*). Opening an instrumented library in a plain process ends the process.
std::uint32_t sanitizer_of(const std::vector<std::string>& needed);

}  // namespace tenon::loader
