// SPDX-License-Identifier: Apache-2.0
#include "io/lock_file.h"

#include <fmt/core.h>

#include <string>

#include <tenon/error.h>

#include "platform/system.h"

namespace tenon::io {
namespace {

/// What the holder wrote, on one line; another process may be about to write it.
std::string readable(std::string owner) {
  for (char& c : owner) c = c >= ' ' && c <= '~' ? c : ' ';
  while (!owner.empty() && owner.back() == ' ') owner.pop_back();
  return owner.empty() ? "another process" : owner;
}

}  // namespace

LockFile::LockFile(const std::string& path) {
  using State = platform::LockFile::State;
  switch (file_.acquire(path, fmt::format("process {} on {}\n", platform::process_id(), platform::host_name()))) {
    case State::held:
    case State::unsupported:
      return;
    case State::held_by_another:
      throw Error(fmt::format("{}: locked by {}", path, readable(file_.owner())));
    case State::not_regular:
      throw Error(path + ": expected a regular file; remove it");
    case State::failed:
      throw Error(path + ": cannot be written: " + platform::message_of(file_.error()));
  }
}

}  // namespace tenon::io
