// SPDX-License-Identifier: Apache-2.0
#include "platform/process_state.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

extern char** environ;

namespace tenon::platform {
namespace {

std::string hexadecimal(std::uintptr_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%zx", static_cast<std::size_t>(value));
  return text;
}

/// Entries of a folder of /proc, each with its link target or the first line of `file`.
ProcessFacts read_folder(const char* folder, const char* what, const char* file) {
  ProcessFacts facts;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
    const std::filesystem::path path = entries->path();
    std::string text;
    if (file != nullptr) {
      std::ifstream in(path / file);
      std::getline(in, text);
    } else {
      text = std::filesystem::read_symlink(path, error).native();
      if (error || text == folder || text.rfind("/proc/", 0) == 0) {  // the descriptor that reads this folder
        error.clear();
        continue;
      }
    }
    facts[what + (" " + path.filename().native())] = "'" + text + "'";
  }
  return facts;
}

}  // namespace

ProcessFacts floating_point_control() {
#if defined(__GLIBC__)
  return {{"the floating-point exceptions that trap", hexadecimal(static_cast<unsigned>(fegetexcept()))}};
#else
  return {};
#endif
}

ProcessFacts crash_handling() {
  ProcessFacts facts;
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;  // reserved by the C library
    const char* known = nullptr;
#if defined(__GLIBC__)
    known = sigabbrev_np(signal);
#endif
    const std::string name = known != nullptr ? std::string("SIG") + known : "signal " + std::to_string(signal);
    const bool with_details = (action.sa_flags & SA_SIGINFO) != 0;
    const auto handler =
        with_details ? reinterpret_cast<std::uintptr_t>(action.sa_sigaction) : reinterpret_cast<std::uintptr_t>(action.sa_handler);
    facts["the handler of " + name] = action.sa_handler == SIG_DFL && !with_details   ? "the default"
                                      : action.sa_handler == SIG_IGN && !with_details ? "to ignore it"
                                                                                      : "a function at " + hexadecimal(handler);
    facts["the thread's mask for " + name] = sigismember(&blocked, signal) == 1 ? "blocked" : "open";
  }
  return facts;
}

ProcessFacts thread_locale() {
  return {{"the thread's own locale", uselocale(static_cast<locale_t>(nullptr)) == LC_GLOBAL_LOCALE ? "none" : "set"}};
}

ProcessFacts environment_variables() {
  ProcessFacts facts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) facts["the environment variable " + line.substr(0, equals)] = "'" + line.substr(equals + 1) + "'";
  }
  return facts;
}

ProcessFacts affinity() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string text;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  }
  return {{"the set of processors this thread may run on", text}};
#else
  return {};
#endif
}

ProcessFacts file_settings() {
  // umask() itself would change it briefly, for all threads.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Umask:", 0) == 0) return {{"the umask", line.substr(line.find_first_not_of(" \t", 6))}};
  }
  return {};
}

ProcessFacts limits() {
  ProcessFacts facts;
  const auto add = [&](auto resource, const char* name) {
    struct rlimit limit {};
    if (getrlimit(resource, &limit) == 0) facts[std::string("the limit of ") + name] = std::to_string(limit.rlim_cur);
  };
  add(RLIMIT_CORE, "core dumps");
  add(RLIMIT_NOFILE, "open files");
  add(RLIMIT_STACK, "the stack");
  add(RLIMIT_AS, "memory");
  facts["the priority (nice)"] = std::to_string(getpriority(PRIO_PROCESS, 0));
  return facts;
}

ProcessFacts threads() {
  return read_folder("/proc/self/task", "thread", "comm");
}

ProcessFacts descriptors() {
  return read_folder("/proc/self/fd", "file descriptor", nullptr);
}

}  // namespace tenon::platform
