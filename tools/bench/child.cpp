// SPDX-License-Identifier: Apache-2.0
#include "bench/child.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <tenon/error.h>

#include "cli/common.h"

extern char** environ;

namespace tenon::bench {

std::string peer_script(const std::string& name) {
  return (cli::installation_prefix() / "share/tenon/peers" / name).string();
}

ChildResult run_child(const std::vector<std::string>& command) {
  return Child(command).wait();
}

Child::Child(const std::vector<std::string>& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(Status::internal, std::string("cannot create a connection to ") + command[0] + ": " + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int failure = posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure == 0) {
    socket_ = ends[0];
  } else {
    close(ends[0]);
  }
}

void Child::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; socket_ >= 0 && sent < text.size();) {
    const ssize_t count = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

bool Child::read_more() {
  char buffer[4096];
  ssize_t got = 0;
  do {
    got = socket_ < 0 ? 0 : read(socket_, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
  return got > 0;
}

std::optional<std::string> Child::read_line() {
  std::size_t end = std::string::npos;
  while ((end = output_.find('\n')) == std::string::npos) {
    if (!read_more()) return std::nullopt;
  }
  std::string line = output_.substr(0, end);
  output_.erase(0, end + 1);
  return line;
}

ChildResult Child::wait() {
  if (socket_ >= 0) {
    shutdown(socket_, SHUT_WR);
    while (read_more()) {
    }
    close(std::exchange(socket_, -1));
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return {exit_code_, std::exchange(output_, {})};
}

PeerFiles::PeerFiles() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw Error("tenon bench: cannot create a folder " + pattern);
  folder_ = pattern;
}

PeerFiles::~PeerFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace tenon::bench
