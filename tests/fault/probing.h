// SPDX-License-Identifier: Apache-2.0
// probing.h - helpers of tests with plugins that end the process that loads them.
#pragma once

#include "loading.h"

inline const fs::path endings = ENDING_DIRECTORY;

inline fs::path ending(const std::string& name) {
  return endings / name / backend_file_name(name);
}

inline Options probing(ProbeMode mode, const fs::path& cache = {}) {
  Options options;
  options.probe = {mode, TENON_PROBE, cache, 10};
  return options;
}

/// How a crash is described.
inline std::string crash_text() {
  const bool windows = tenon::platform::conventions().format == tenon::platform::BinaryFormat::pe;
  return windows ? "crashed (exception 0xc0000005, access violation)" : "crashed (signal 11, Segmentation fault)";
}

inline bool was_probed(const Loaded& loaded) {
  return !loaded.only().probed.empty();
}

/// Checks that a plugin of ENDING_DIRECTORY is refused after its probe, having reached `stage` at least.
inline void check_ending(const std::string& name, Stage stage, const std::string& text, double timeout_seconds = 10) {
  CAPTURE(name);
  Options options = probing(ProbeMode::always);
  options.probe.timeout_seconds = timeout_seconds;
  const Loaded loaded({ending(name)}, options);
  const Record& record = loaded.only();
  CHECK_FALSE(record.healthy);
  CHECK(record.status == TENON_INTERNAL);
  CHECK(record.reached >= stage);
  CHECK(contains(record.text, text));
  CHECK(contains(record.remedy, "deny: [" + name + "]"));
}
