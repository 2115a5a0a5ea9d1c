// loader/check.h - what can be known about a file before it is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::loader {

/// Throws a Refusal unless the file is there and may be read.
void check_readable(const std::filesystem::path& file);

/// Throws a Refusal unless the file is a whole shared object for this machine that this process can take.
void check_library(const std::filesystem::path& file);

/// Who else may put code into the file or its folder: everybody, or an owner who is neither this user nor root. In a sticky folder (/tmp)
/// others cannot replace a file, but add one: that matters unless the file itself was `named`.
std::vector<std::string> exposures_of(const std::filesystem::path& file, bool named);

/// The sanitizer that a needed-list speaks of (TENON_SANITIZER_*). Opening an instrumented library in a plain process ends the process.
std::uint32_t sanitizer_of(const std::vector<std::string>& needed);

}  // namespace tenon::loader
