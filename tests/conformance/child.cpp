// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include <tenon/error.h>

namespace tenon::conformance {
namespace {

using nlohmann::json;

bool is_a_child = false;  ///< this process is one of the kit's children

constexpr std::size_t max_printed = 4096;     ///< bytes of the output that are kept
constexpr std::size_t max_lines = 12;         ///< lines of the output that a report quotes
constexpr std::chrono::seconds patience{10};  ///< the time to wait for a killed process before it is left to the system

// ---------------------------------------------------------------- the child's side

void send(int pipe, const json& message) {
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n = write(pipe, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);  // the parent is gone, or the backend has closed a descriptor that it does not own
    sent += static_cast<std::size_t>(n);
  }
}

json to_message(std::size_t index, const Verdict& verdict) {
  json message{{"done", index}, {"class", static_cast<int>(verdict.outcome)}, {"text", verdict.text}, {"seconds", verdict.seconds}};
  for (const auto& [name, field] : fact_fields) {
    if (!(verdict.facts.*field).empty()) message["facts"][name] = verdict.facts.*field;
  }
  return message;
}

/// Loads the backend itself, since devices do not survive a fork.
[[noreturn]] void work(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down, int pipe) {
  is_a_child = true;
  // A crash must end the child, whatever handlers the parent has.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
  try {
    auto backend_under_test = std::make_unique<BackendUnderTest>(options);
    send(
        pipe,
        {{"backend", backend_under_test->backend()}, {"version", backend_under_test->version()}, {"device", backend_under_test->device()}});
    for (std::size_t i = chunk.begin; i < chunk.end; ++i) {
      const Verdict verdict = backend_under_test->run(cases[i], options.seed);
      send(pipe, to_message(i, verdict));
      if (verdict.outcome == Class::fail && backend_under_test->device_lost()) {
        send(pipe, {{"device_lost", true}});
        _exit(0);  // all other cases would fail in this process
      }
      if (cases[i].ending == Ending::exits && verdict.outcome == Class::pass) {
        static_cast<void>(backend_under_test.release());  // everything stays open
        std::exit(0);
      }
    }
    if (shuts_down) {
      backend_under_test.reset();
    } else {
      static_cast<void>(backend_under_test.release());
    }
    send(pipe, {{"end", true}});
  } catch (const WrongUse& e) {
    send(pipe, {{"wrong_use", e.what()}});
  } catch (const std::exception& e) {
    send(pipe, {{"refusal", e.what()}});
  }
  _exit(0);
}

/// Sets up a new process group, an empty standard input, and output to the parent.
void settle(int output) {
  setpgid(0, 0);
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no child outlives an interrupted run
#endif
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  if (output > STDERR_FILENO) close(output);
}

// ---------------------------------------------------------------- the parent's side

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) throw Error(Status::internal, fmt::format("conformance: pipe: {}", std::strerror(errno)));
    from = ends[0];
    to = ends[1];
    fcntl(from, F_SETFD, FD_CLOEXEC);
    fcntl(from, F_SETFL, O_NONBLOCK);
  }
  int from = -1, to = -1;
};

/// Reads all that is available. Closes the descriptor at its end.
std::string take(int& descriptor) {
  std::string text;
  char bytes[4096];
  while (descriptor >= 0) {
    const ssize_t n = read(descriptor, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      close(descriptor);
      descriptor = -1;
      break;
    }
    text.append(bytes, static_cast<std::size_t>(n));
    if (text.size() > 1u << 20) break;  // endless output must not block the other children
  }
  return text;
}

std::string last_lines(const std::string& printed) {
  std::string text;
  std::size_t end = printed.find_last_not_of(" \t\r\n") + 1, begin = end;
  for (std::size_t line = 0; line < max_lines && begin > 0; ++line) {
    begin = printed.rfind('\n', begin - 1);
    if (begin == std::string::npos) begin = 0;
  }
  for (const char c : printed.substr(begin, end - begin)) {
    if (c == '\n') {
      if (!text.empty()) text += "\n| ";
    } else if (c != '\r') {
      text += static_cast<unsigned char>(c) < ' ' && c != '\t' ? '?' : c;
    }
  }
  return text;
}

}  // namespace

Child::Child(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down)
    : options_(options), chunk_(chunk), heard_(std::chrono::steady_clock::now()) {
  const Pipe messages, output;
  std::fflush(nullptr);  // otherwise buffered output would be written twice
  process_ = fork();
  if (process_ < 0) throw Error(Status::internal, fmt::format("conformance: fork: {}", std::strerror(errno)));
  if (process_ == 0) {
    settle(output.to);
    work(options, cases, chunk, shuts_down, messages.to);
  }
  setpgid(process_, process_);  // also in the child: either may run first
  close(messages.to);
  close(output.to);
  messages_ = messages.from;
  output_ = output.from;
}

Child::~Child() {
  if (!over_) {
    end_it();
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
  }
  if (messages_ >= 0) close(messages_);
  if (output_ >= 0) close(output_);
}

void Child::end_it() {
  kill(process_, SIGKILL);
  kill(-process_, SIGKILL);  // and its descendants
  killed_ = true;
}

void Child::handle(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object()) return;  // the backend wrote to a descriptor that it does not own
  const auto text = [&](const char* key) { return message.value(key, std::string()); };
  if (message.contains("backend")) {
    backend_ = text("backend");
    version_ = text("version");
    device_ = text("device");
  }
  if (message.contains("refusal")) refusal_ = text("refusal");
  if (message.contains("wrong_use")) wrong_use_ = text("wrong_use");
  if (message.contains("device_lost")) device_lost_ = true;
  if (message.contains("end")) ended_ = next() == chunk_.end;
  if (message.value("done", std::size_t{0} - 1) != next()) return;
  Verdict verdict;
  verdict.outcome = static_cast<Class>(message.value("class", static_cast<int>(Class::fail)));
  verdict.text = text("text");
  verdict.seconds = message.value("seconds", 0.0);
  if (message.contains("facts")) {
    for (const auto& [name, field] : fact_fields) verdict.facts.*field = message["facts"].value(name, std::string());
  }
  verdicts_.push_back(std::move(verdict));
}

void Child::advance() {
  if (over_) return;
  // First check whether it is alive, so that all it wrote before its death is read below.
  siginfo_t died{};
  const int waited = waitid(P_PID, static_cast<id_t>(process_), &died, WEXITED | WNOHANG | WNOWAIT);
  // If SIGCHLD is ignored, the system has already reaped it.
  const bool dead = waited == 0 ? died.si_pid == process_ : errno == ECHILD;
  const auto now = std::chrono::steady_clock::now();
  const std::string said = take(messages_);
  if (!said.empty()) heard_ = now;
  unread_ += said;
  std::size_t begin = 0;
  for (std::size_t line; (line = unread_.find('\n', begin)) != std::string::npos; begin = line + 1)
    handle(unread_.substr(begin, line - begin));
  unread_.erase(0, begin);
  printed_ += take(output_);
  if (printed_.size() > max_printed) printed_.erase(0, printed_.size() - max_printed);
  if (dead) {
    kill(-process_, SIGKILL);
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
    over_ = true;
  } else if (killed_) {
    over_ = now - heard_ > patience;  // it sleeps in a driver that no signal interrupts
  } else if (std::chrono::duration<double>(now - heard_).count() > options_.timeout_s) {
    timed_out_ = true;
    heard_ = now;
    end_it();
  }
}

bool Child::exited_well() const {
  return over_ && !timed_out_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

std::string Child::fate() const {
  std::string text;
  if (timed_out_) {
    text = fmt::format("no message for {} s: the process was killed", options_.timeout_s);
  } else if (WIFSIGNALED(status_)) {
    text = fmt::format("the process died of signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
  } else {
    text = fmt::format("the process ended with exit code {}", WEXITSTATUS(status_));
  }
  const std::string lines = last_lines(printed_);
  return lines.empty() ? text : text + "; it printed last:\n| " + lines;
}

}  // namespace tenon::conformance

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// LeakSanitizer calls this at exit. Children end with everything open; the unit tests, which close everything, check for leaks.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return tenon::conformance::is_a_child ? 1 : 0;
}
#endif
#endif
