// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_streams.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/printable.h"

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
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // open() returns the lowest free number: the one that is missing.
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd) std::_Exit(1);
  }
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
  constexpr rlim_t min_bytes = 256 << 10;
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= min_bytes) return true;
  // An exception needs more stack than may be left; this message needs little.
  std::array<char, 160> text;
  const auto end = fmt::format_to_n(text.data(), text.size(),
                                    "tenon: error: the stack limit is {} KiB, expected at least {}; raise it with `ulimit -s 8192`\n",
                                    stack.rlim_cur >> 10, min_bytes >> 10);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(end.out - text.data()));
  return false;
}

}  // namespace tenon::cli
