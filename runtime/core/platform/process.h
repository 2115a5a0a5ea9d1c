// SPDX-License-Identifier: Apache-2.0
// platform/process.h - child processes, and what the system says of this one.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::platform {

/// How a process ended.
struct ProcessEnd {
  enum class Kind {
    exited,
    crashed,  ///< by a signal, or on Windows by an exception
    unknown,  ///< the program that embeds this library waits for its children itself
  };
  Kind kind = Kind::unknown;
  int exit_code = 0;  ///< of a process that exited
  std::string cause;  ///< of a crash: "signal 11", "exception 0xc0000005"
  std::string name;   ///< of a crash: "Segmentation fault", "access violation"
};

/// A program to start, and what connects it with this process. Other files of this process are not inherited.
struct ProcessOptions {
  enum class Output {
    inherited,  ///< it writes where this process writes
    standard,   ///< its standard output comes to read_output()
    all,        ///< its standard output and error come to read_output()
  };
  std::filesystem::path program;                                 ///< a name without a folder is searched for in PATH
  std::vector<std::string> arguments;                            ///< UTF-8, without the program's name
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables that are added to those of this process, UTF-8
  bool input = false;                                            ///< it reads what write() sends; otherwise its standard input is empty
  Output output = Output::inherited;
  bool messages = false;  ///< it has a MessageChannel to this process
  /// It is a process group of its own: kill() ends its descendants, too, and Ctrl-C in a terminal does not reach it.
  bool own_group = false;
};

/// A process could not be started. what() is the system's reason.
struct StartError : std::runtime_error {
  StartError(const std::string& reason, bool no_pipe) : std::runtime_error(reason), lacks_pipe(no_pipe) {}
  bool lacks_pipe;  ///< a pipe could not be created: the limit of open files is reached
};

/// A program that this process has started.
/// Threads  one at a time.
class Process {
 public:
  /// Errors  StartError.
  explicit Process(const ProcessOptions& options);
  /// Kills the process if it still runs, and waits until it has ended. One that does not end within 10 s of kill(), because it sleeps in a
  /// driver, is left to the system.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// What has come and has not been read, at most 1 MB; does not wait. Output and messages that the process sent before ended() returned
  /// true are complete in the calls that follow.
  std::string read_output();
  std::string read_messages();
  /// Sends to its standard input. Ignored if it no longer reads.
  void write(std::string_view bytes);
  /// Ends its standard input.
  void close_input();

  /// Whether the process has ended; does not wait.
  bool ended();
  /// Kills it; a process group with its descendants. Waits for nothing.
  void kill();
  /// How it ended, once ended() has returned true.
  const ProcessEnd& end() const;

 private:
  friend void wait_for_any(std::span<Process* const> processes, std::chrono::milliseconds timeout);
  struct State;
  std::unique_ptr<State> state_;
};

/// Waits until one of the processes has sent something or has ended, at most `timeout`. It may return early.
void wait_for_any(std::span<Process* const> processes, std::chrono::milliseconds timeout);

/// Runs a program with the streams of this process, and ends this process with its exit code: the last call of a program that has another
/// do its work. Returns the system's reason if the program cannot be started.
std::string continue_as(const std::filesystem::path& program, std::span<const std::string> arguments);

/// The side of a program that was started with ProcessOptions::messages.
class MessageChannel {
 public:
  /// The channel to the process that started this one; nothing if there is none. Called once, before other threads start. This process
  /// then ends with its parent where the system offers that, programs that it starts do not inherit the channel, and a crash ends it
  /// without a dialog.
  static std::optional<MessageChannel> to_parent();

  /// Returns false if nobody reads any more.
  bool send(std::string_view bytes) const;

 private:
  explicit MessageChannel(std::intptr_t handle) : handle_(handle) {}
  std::intptr_t handle_;
};

/// Ends this process at once: no destructor, exit handler or other thread runs any more, of its libraries neither.
[[noreturn]] void exit_now(int code);

/// The command line of this process as UTF-8, with the program's name first. `argc` and `argv` are those of main.
std::vector<std::string> command_line(int argc, const char* const* argv);

/// The threads of this process; nothing if the system does not say.
std::optional<int> thread_count();

}  // namespace tenon::platform
