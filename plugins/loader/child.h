// SPDX-License-Identifier: Apache-2.0
// loader/child.h - a child process that loads a plugin, so that a crash, a hang or an exit is a report and not the end of this process.
#pragma once

#include <string>
#include <vector>

#include "loader/loader.h"
#include "platform/process.h"

namespace tenon::loader {

/// What the child is doing. It sends a line with the letter when it begins; longer lines are its own.
enum class Phase : char { querying = 'a', creating = 'c', opening = 'o', closing = 's', exiting = 'e' };

/// The child's side: sends one line, ends the child if nobody reads it.
void tell(const platform::MessageChannel& messages, const std::string& line);
void tell(const platform::MessageChannel& messages, Phase phase);

/// How a child ended.
struct ChildReport {
  std::vector<std::string> lines;  ///< what it sent besides phases
  std::string output;              ///< the last lines that it printed
  std::string text;                ///< "the plugin crashed (signal 11, ...) while ..."; empty if it ended in order
  bool timed_out = false;
  Stage reached = Stage::devices;  ///< how far the plugin came, if it did not end in order
};

/// Starts a program of ours that loads the plugin and tells what it does, and waits until it has ended; kills it when the time is up. It
/// has nothing to read, and what it prints is in the report. Errors  a LoadError if there is no pipe or no child.
ChildReport run_child(const std::filesystem::path& program, const std::vector<std::string>& arguments, double timeout_seconds);

}  // namespace tenon::loader
