// SPDX-License-Identifier: Apache-2.0
#include "loader/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "loader/load_error.h"

namespace tenon::loader {
namespace {

const char* describe(Phase phase) {
  switch (phase) {
    case Phase::querying:
      return "while loading the library and calling its tenon_backend_query";
    case Phase::creating:
      return "in its `create` or while listing its devices";
    case Phase::opening:
      return "while opening and closing its devices";
    case Phase::closing:
      return "during shutdown";
    case Phase::exiting:
      return "after shutdown, when the process was to end";
  }
  return "";
}

/// A pipe whose ends are closed by the destructor and in programs that this process starts. Its writing end is above the descriptors that
/// a child has for other purposes, even if this process has closed them.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw LoadError(TENON_OUT_OF_MEMORY, fmt::format("a child process for it cannot be started: no pipe: {}", std::strerror(errno)),
                      "raise the limit of open files (ulimit -n)");
    }
    if (const int moved = fcntl(ends[1], F_DUPFD_CLOEXEC, 10); moved >= 0) {
      close(ends[1]);
      ends[1] = moved;
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  int ends[2] = {-1, -1};
};

/// Appends the available bytes. Returns false if the other end is closed.
bool receive(int pipe, std::string& text) {
  char buffer[4096];
  const ssize_t n = read(pipe, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  text.append(buffer, static_cast<std::size_t>(n));
  return true;
}

/// Reads until the child closes its end of `messages`, at the latest by ending. Returns false when the time is up.
bool receive_all(int messages, int output, double timeout_seconds, std::string& out_messages, std::string& out_output) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  constexpr std::size_t max_output = 16384;
  pollfd waiting[] = {{messages, POLLIN, 0}, {output, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const int ready = poll(waiting, 2, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (waiting[1].revents != 0 && !receive(output, out_output)) waiting[1].fd = -1;
    if (out_output.size() > 2 * max_output) out_output.erase(0, out_output.size() - max_output);
    if (waiting[0].revents != 0 && !receive(messages, out_messages)) break;
  }
  // Output printed before the end is still in the pipe. Do not wait for a grandchild that holds it open.
  while (poll(&waiting[1], 1, 0) > 0 && receive(output, out_output)) continue;
  return true;
}

/// The last `count` lines of the text.
std::string last_lines(const std::string& text, int count) {
  std::size_t begin = text.find_last_not_of('\n');
  if (begin == std::string::npos) return {};
  const std::size_t end = begin + 1;
  for (; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && --count == 0) break;
  }
  return text.substr(begin, end - begin);
}

/// The exit status; nothing if the program that embeds this library reaps its children itself.
std::optional<int> wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return status;
}

}  // namespace

void tell(int messages, const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t n = write(messages, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the parent no longer reads
    written += static_cast<std::size_t>(n);
  }
}
void tell(int messages, Phase phase) {
  tell(messages, std::string(1, static_cast<char>(phase)));
}

ChildReport run_child(const std::function<pid_t(const ChildPipes&)>& start, double timeout_seconds) {
  Pipe messages, output;
  const pid_t child = start({messages.ends[1], output.ends[1]});
  if (child < 0) {
    throw LoadError(TENON_OUT_OF_MEMORY, fmt::format("a child process for it cannot be started: {}", std::strerror(errno)),
                    "raise the limit of processes (ulimit -u), or free memory");
  }
  messages.close_end(1);
  output.close_end(1);
  ChildReport report;
  std::string sent, printed;
  report.timed_out = !receive_all(messages.ends[0], output.ends[0], timeout_seconds, sent, printed);
  if (report.timed_out) kill(child, SIGKILL);
  const std::optional<int> status = wait_for(child);
  report.output = last_lines(printed, 20);

  Phase phase = Phase::querying;
  for (std::size_t begin = 0, end = 0; (end = sent.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end - begin == 1) {
      phase = static_cast<Phase>(sent[begin]);
    } else {
      report.lines.push_back(sent.substr(begin, end - begin));
    }
  }
  if (phase == Phase::querying) report.reached = Stage::found;
  if (phase == Phase::creating) report.reached = Stage::self_check;
  if (report.timed_out) {
    report.text = fmt::format("did not return within {:g} s", timeout_seconds);
  } else if (status && WIFSIGNALED(*status)) {
    report.text = fmt::format("crashed (signal {}, {})", WTERMSIG(*status), strsignal(WTERMSIG(*status)));
  } else if (phase != Phase::exiting || (status && WEXITSTATUS(*status) != 0)) {
    report.text = status ? fmt::format("exited the process (exit code {})", WEXITSTATUS(*status)) : "ended the process";
  } else {
    return report;
  }
  report.text = fmt::format("the plugin {} {}", report.text, describe(phase));
  return report;
}

}  // namespace tenon::loader
