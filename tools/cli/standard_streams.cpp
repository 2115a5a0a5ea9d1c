// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_streams.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/printable.h"
#include "platform/program.h"
#include "platform/streams.h"

namespace tenon::cli {
namespace {

int first_failure = 0;  ///< errno of the first write to standard output that failed

void keep(bool failed) {
  if (failed && first_failure == 0) first_failure = errno;
}

}  // namespace

void write_output(const std::string& bytes) {
  errno = 0;
  keep(std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0);
}

void print(const std::string& text) {
  write_output(printable(text));
}

void print_message(const std::string& text) {
  std::fflush(stdout);
  std::fputs(printable(text).c_str(), stderr);
}

void print_error(const std::string& text) {
  print_message("tenon: error: " + text + "\n");
}

void open_standard_streams() {
  if (!platform::prepare_standard_streams()) std::_Exit(1);
}

int close_standard_output(int exit_code) {
  errno = 0;
  const bool failed = std::ferror(stdout) != 0;  // also what was printed by other means
  keep(std::fclose(stdout) != 0);
  if (!failed && first_failure == 0) return exit_code;
  const std::string reason = first_failure == 0 ? "" : std::string(": ") + std::strerror(first_failure);
  std::fprintf(stderr, "tenon: error: standard output: cannot be written%s; what was printed is incomplete\n", reason.c_str());
  return exit_code == 0 ? 1 : exit_code;
}

bool stack_suffices() {
  constexpr std::uint64_t min_bytes = 256 << 10;
  const std::optional<std::uint64_t> limit = platform::stack_limit_bytes();
  if (!limit || *limit >= min_bytes) return true;
  // An exception needs more stack than may be left; this message needs little.
  std::array<char, 160> text;
  const auto end = fmt::format_to_n(text.data(), text.size(),
                                    "tenon: error: the stack limit is {} KiB, expected at least {}; raise it with `ulimit -s 8192`\n",
                                    *limit >> 10, min_bytes >> 10);
  platform::write_to_standard_error({text.data(), static_cast<std::size_t>(end.out - text.data())});
  return false;
}

}  // namespace tenon::cli
