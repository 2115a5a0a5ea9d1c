// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_streams.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tenon/error.h>

#include "core/printable.h"

namespace tenon::cli {
namespace {

int first_failure = 0;  ///< errno of the first write to standard output that failed

void keep(bool failed) {
  if (failed && first_failure == 0) first_failure = errno;
}

}  // namespace

void print(const std::string& text) {
  errno = 0;
  keep(std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0);
}

void print_error(const std::string& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "tenon: error: %s\n", printable(text).c_str());
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

void check_stack_limit() {
  constexpr rlim_t min_bytes = 256 << 10;
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= min_bytes) return;
  throw Error(fmt::format("the stack limit is {} KiB, expected at least {}; raise it with `ulimit -s {}`", stack.rlim_cur >> 10,
                          min_bytes >> 10, 8192));
}

}  // namespace tenon::cli
