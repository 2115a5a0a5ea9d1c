// SPDX-License-Identifier: Apache-2.0
// loader/probe_answers.h - the answers of earlier probes, one small file each in the user's cache folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "loader/loader.h"

namespace tenon::loader {

/// What a probe found.
struct ProbeAnswer {
  std::string text;  ///< how the plugin failed; empty if it did not
  Stage reached = Stage::devices;
  std::string output;  ///< what it printed
};

/// The answer for this file, as it is now, from this build of the core. A file with another date but the same SHA-256 is the same file. A
/// failure is forgotten after an hour, because its cause may lie outside the file: a driver, a busy machine.
std::optional<ProbeAnswer> known_answer(const std::filesystem::path& folder, const std::filesystem::path& file);

/// Keeps an answer. Where that fails, the file is probed again next time.
void keep_answer(const std::filesystem::path& folder, const std::filesystem::path& file, const ProbeAnswer& answer);

}  // namespace tenon::loader
