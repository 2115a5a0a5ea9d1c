// SPDX-License-Identifier: Apache-2.0
#include "io/output_target.h"

#include <system_error>
#include <utility>

#include <tenon/error.h>

namespace tenon::io {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(path + ": cannot be written: " + reason);
}

}  // namespace

OutputTarget find_output(const std::string& path) {
  OutputTarget target = platform::find_output(path);
  if (!target.problem.empty()) fail(path, target.problem);
  return target;
}

platform::File open_growing(const std::string& path, Growth growth) {
  OutputTarget target = find_output(path);
  if (target.in_place) return std::move(target.in_place);
  std::error_code error;
  platform::File file = platform::open_output(target.path, growth == Growth::append, error);
  if (!file) fail(path, platform::message_of(error));
  return file;
}

std::FILE* open_growing_stream(const std::string& path, Growth growth) {
  platform::File file = open_growing(path, growth);
  std::error_code error;
  std::FILE* const stream = platform::open_stream(file, growth == Growth::append ? "ab" : "wb", error);
  if (stream == nullptr) fail(path, platform::message_of(error));
  return stream;
}

}  // namespace tenon::io
