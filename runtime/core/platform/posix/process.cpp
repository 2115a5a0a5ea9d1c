// SPDX-License-Identifier: Apache-2.0
#include "platform/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

extern char** environ;

namespace tenon::platform {
namespace {

using Clock = std::chrono::steady_clock;

/// The descriptor of a MessageChannel in the program that has it.
constexpr int message_descriptor = 3;
/// The most that one call reads: endless output of one process must not block the others.
constexpr std::size_t max_read = 1 << 20;
constexpr std::chrono::seconds patience{10};

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

/// Two connected descriptors, closed by the destructor and in programs that this process starts. `theirs` is above the descriptors that a
/// child has for other purposes, even if this process has closed them.
struct Connection {
  enum class Kind { from_child, to_child };
  explicit Connection(Kind kind) {
    int ends[2];
    // A socket, since a pipe whose reader has ended sends SIGPIPE.
    const int failed = kind == Kind::to_child ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC);
    if (failed != 0) throw StartError(std::string("no pipe: ") + std::strerror(errno), true);
    ours = ends[0];
    theirs = ends[1];
    if (const int moved = fcntl(theirs, F_DUPFD_CLOEXEC, 10); moved >= 0) {
      close(theirs);
      theirs = moved;
    }
    if (kind == Kind::from_child) fcntl(ours, F_SETFL, O_NONBLOCK);
  }
  ~Connection() {
    close_descriptor(ours);
    close_descriptor(theirs);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  int take_ours() { return std::exchange(ours, -1); }
  int ours = -1, theirs = -1;
};

/// What posix_spawn does in the child before the program starts.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

/// The environment of this process with the additions, as NAME=value.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& additions) {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const auto replaces = [&](const auto& addition) {
      return line.size() > addition.first.size() && line.starts_with(addition.first) && line[addition.first.size()] == '=';
    };
    if (std::none_of(additions.begin(), additions.end(), replaces)) all.emplace_back(line);
  }
  for (const auto& [name, value] : additions) all.push_back(name + "=" + value);
  return all;
}

/// A list for exec functions, which end it with NULL and do not write to it.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> command_of(const std::filesystem::path& program, std::span<const std::string> arguments) {
  std::vector<std::string> command{program.native()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// Reads what is available. Closes the descriptor at its end.
std::string read_available(int& descriptor) {
  std::string text;
  char bytes[4096];
  while (descriptor >= 0 && text.size() < max_read) {
    const ssize_t n = read(descriptor, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      close_descriptor(descriptor);
      break;
    }
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

ProcessEnd end_of(int status) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) {
    end.kind = ProcessEnd::Kind::crashed;
    end.cause = "signal " + std::to_string(WTERMSIG(status));
    end.name = strsignal(WTERMSIG(status));
  } else {
    end.kind = ProcessEnd::Kind::exited;
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace

struct Process::State {
  pid_t process = -1;
  bool own_group = false;
  int input = -1, output = -1, messages = -1;
  bool over = false;
  ProcessEnd end;
  std::optional<Clock::time_point> killed;

  ~State() {
    close_descriptor(input);
    close_descriptor(output);
    close_descriptor(messages);
  }
};

Process::Process(const ProcessOptions& options) : state_(std::make_unique<State>()) {
  using Output = ProcessOptions::Output;
  std::optional<Connection> input, output, messages;
  if (options.input) input.emplace(Connection::Kind::to_child);
  if (options.output != Output::inherited) output.emplace(Connection::Kind::from_child);
  if (options.messages) messages.emplace(Connection::Kind::from_child);

  SpawnSettings settings;
  if (input) {
    posix_spawn_file_actions_adddup2(&settings.files, input->theirs, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&settings.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (output) posix_spawn_file_actions_adddup2(&settings.files, output->theirs, STDOUT_FILENO);
  if (options.output == Output::all) posix_spawn_file_actions_adddup2(&settings.files, output->theirs, STDERR_FILENO);
  if (messages) posix_spawn_file_actions_adddup2(&settings.files, messages->theirs, message_descriptor);
  // A crash ends the program, even if this process ignores the signal.
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&settings.attributes, &defaults);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGDEF | (options.own_group ? POSIX_SPAWN_SETPGROUP : 0)));

  const std::vector<std::string> command = command_of(options.program, options.arguments);
  const std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> arguments = pointers_to(command), variables = pointers_to(environment);
  const int failure =
      posix_spawnp(&state_->process, command[0].c_str(), &settings.files, &settings.attributes, arguments.data(), variables.data());
  if (failure != 0) throw StartError(std::strerror(failure), false);
  state_->own_group = options.own_group;
  if (input) state_->input = input->take_ours();
  if (output) state_->output = output->take_ours();
  if (messages) state_->messages = messages->take_ours();
}

Process::~Process() {
  if (!ended() && !state_->killed) kill();
  for (auto pause = std::chrono::microseconds(100); !ended() && Clock::now() - *state_->killed < patience;) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(10000));
  }
}

std::string Process::read_output() {
  return read_available(state_->output);
}

std::string Process::read_messages() {
  return read_available(state_->messages);
}

void Process::write(std::string_view bytes) {
  while (state_->input >= 0 && !bytes.empty()) {
    const ssize_t n = send(state_->input, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Process::close_input() {
  close_descriptor(state_->input);
}

bool Process::ended() {
  State& state = *state_;
  if (state.over) return true;
  siginfo_t died{};
  const int waited = waitid(P_PID, static_cast<id_t>(state.process), &died, WEXITED | WNOHANG | WNOWAIT);
  if (waited == 0 && died.si_pid != state.process) return false;
  if (waited != 0 && errno != ECHILD) return false;
  state.over = true;
  if (waited != 0) return true;  // if SIGCHLD is ignored, the system has reaped it
  // The group's number is not given to others before the process is reaped.
  if (state.own_group) ::kill(-state.process, SIGKILL);
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = waitpid(state.process, &status, 0)) < 0 && errno == EINTR) continue;
  if (reaped == state.process) state.end = end_of(status);
  return true;
}

void Process::kill() {
  if (state_->over) return;
  ::kill(state_->process, SIGKILL);
  if (state_->own_group) ::kill(-state_->process, SIGKILL);
  state_->killed = Clock::now();
}

const ProcessEnd& Process::end() const {
  return state_->end;
}

void wait_for_any(std::span<Process* const> processes, std::chrono::milliseconds timeout) {
  // A process that has closed its pipes, or has none, is known to have ended only by asking.
  constexpr std::chrono::milliseconds tick{1}, longest{50};
  timeout = std::min(timeout, longest);
  std::vector<pollfd> ends;
  for (Process* const process : processes) {
    const Process::State& state = *process->state_;
    const std::size_t before = ends.size();
    for (const int descriptor : {state.messages, state.output}) {
      if (descriptor >= 0) ends.push_back({descriptor, POLLIN, 0});
    }
    if (ends.size() == before) timeout = std::min(timeout, tick);
  }
  poll(ends.data(), ends.size(), static_cast<int>(std::max(timeout, std::chrono::milliseconds(0)).count()));
}

std::string continue_as(const std::filesystem::path& program, std::span<const std::string> arguments) {
  const std::vector<std::string> command = command_of(program, arguments);
  execv(command[0].c_str(), pointers_to(command).data());
  return std::strerror(errno);
}

std::optional<MessageChannel> MessageChannel::to_parent() {
  struct stat status {};
  if (fstat(message_descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return std::nullopt;
  if (fcntl(message_descriptor, F_SETFD, FD_CLOEXEC) != 0) return std::nullopt;
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  return MessageChannel(message_descriptor);
}

bool MessageChannel::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::write(static_cast<int>(handle_), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void exit_now(int code) {
  _exit(code);
}

std::vector<std::string> command_line(int argc, const char* const* argv) {
  return {argv, argv + argc};
}

std::optional<int> thread_count() {
  std::error_code error;
  int count = 0;
  std::filesystem::directory_iterator tasks("/proc/self/task", error);
  for (const std::filesystem::directory_iterator end; !error && tasks != end; tasks.increment(error)) ++count;
  if (error) return std::nullopt;
  return count;
}

}  // namespace tenon::platform
