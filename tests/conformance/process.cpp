// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cfloat>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

extern char** environ;

namespace tenon::conformance {
namespace {

Reading read_floating_point() {
  const auto name_of_rounding = [](int mode) -> std::string {
    switch (mode) {
      case FE_TONEAREST:
        return "to nearest";
      case FE_UPWARD:
        return "upward";
      case FE_DOWNWARD:
        return "downward";
      case FE_TOWARDZERO:
        return "towards zero";
      default:
        return fmt::format("mode {}", mode);
    }
  };
  // The effect of the control register shows in arithmetic.
  volatile double smallest_normal = DBL_MIN, denormal = DBL_MIN / 4, three = 3, one = 1;
  const volatile double half = smallest_normal / 2, again = denormal * 2, third = one / three;
  return {{"the rounding mode", name_of_rounding(std::fegetround())},
          {"the floating-point exceptions that trap", fmt::format("{:#x}", fegetexcept())},
          {"the result of the smallest normal number / 2", half == 0 ? "0 (flush-to-zero)" : "a denormal"},
          {"the result of a denormal * 2", again == 0 ? "0 (denormals-are-zero)" : "not 0"},
          {"1 / 3", fmt::format("{:a}", static_cast<double>(third))}};
}

Reading read_signals() {
  Reading reading;
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;  // reserved by the C library
    const char* known = sigabbrev_np(signal);
    const std::string name = known != nullptr ? fmt::format("SIG{}", known) : fmt::format("signal {}", signal);
    const bool with_details = (action.sa_flags & SA_SIGINFO) != 0;
    const auto handler =
        with_details ? reinterpret_cast<std::uintptr_t>(action.sa_sigaction) : reinterpret_cast<std::uintptr_t>(action.sa_handler);
    reading["the handler of " + name] = action.sa_handler == SIG_DFL && !with_details   ? "the default"
                                        : action.sa_handler == SIG_IGN && !with_details ? "to ignore it"
                                                                                        : fmt::format("a function at {:#x}", handler);
    reading["the thread's mask for " + name] = sigismember(&blocked, signal) == 1 ? "blocked" : "open";
  }
  return reading;
}

Reading read_locale() {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  const char* all = std::setlocale(LC_ALL, nullptr);
  return {{"the locale", all != nullptr ? all : "unknown"},
          {"the thread's own locale", uselocale(static_cast<locale_t>(nullptr)) == LC_GLOBAL_LOCALE ? "none" : "set"},
          {"0.5 as printf writes it", text}};
}

Reading read_environment() {
  Reading reading;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) {
      reading["the environment variable " + line.substr(0, equals)] = fmt::format("'{}'", line.substr(equals + 1));
    }
  }
  return reading;
}

Reading read_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) text += fmt::format("{}{}", text.empty() ? "" : ",", cpu);
  }
  return {{"the set of processors this thread may run on", text}};
}

Reading read_files() {
  Reading reading;
  std::error_code error;
  reading["the working directory"] = std::filesystem::current_path(error).string();
  // umask() itself would change it briefly, for all threads.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Umask:", 0) == 0) reading["the umask"] = line.substr(line.find_first_not_of(" \t", 6));
  }
  return reading;
}

Reading read_limits() {
  Reading reading;
  static constexpr struct {
    __rlimit_resource resource;
    const char* name;
  } resources[] = {{RLIMIT_CORE, "core dumps"}, {RLIMIT_NOFILE, "open files"}, {RLIMIT_STACK, "the stack"}, {RLIMIT_AS, "memory"}};
  for (const auto& entry : resources) {
    struct rlimit limit {};
    if (getrlimit(entry.resource, &limit) == 0) reading[fmt::format("the limit of {}", entry.name)] = fmt::format("{}", limit.rlim_cur);
  }
  reading["the priority (nice)"] = fmt::format("{}", getpriority(PRIO_PROCESS, 0));
  return reading;
}

/// Entries of a folder of /proc, each with its link target or the first line of `file`.
Reading read_folder(const char* folder, const char* what, const char* file) {
  Reading reading;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
    const std::filesystem::path path = entries->path();
    std::string text;
    if (file != nullptr) {
      std::getline(std::ifstream(path / file), text);
    } else {
      text = std::filesystem::read_symlink(path, error).string();
      if (error || text == folder || text.rfind("/proc/", 0) == 0) {  // the descriptor that reads this folder
        error.clear();
        continue;
      }
    }
    reading[fmt::format("{} {}", what, path.filename().string())] = fmt::format("'{}'", text);
  }
  return reading;
}

Reading read_threads() {
  return read_folder("/proc/self/task", "thread", "comm");
}

Reading read_descriptors() {
  return read_folder("/proc/self/fd", "file descriptor", nullptr);
}

}  // namespace

const std::vector<Facet>& process_facets() {
  static const std::vector<Facet> facets = {
      {"floating_point", read_floating_point, false},
      {"signals", read_signals, false},
      {"locale", read_locale, false},
      {"environment", read_environment, false},
      {"affinity", read_affinity, false},
      {"files", read_files, false},
      {"limits", read_limits, false},
      {"threads", read_threads, true},
      {"descriptors", read_descriptors, true},
  };
  return facets;
}

const Facet& process_facet(const std::string& name) {
  const auto& facets = process_facets();
  const auto found = std::find_if(facets.begin(), facets.end(), [&](const Facet& f) { return f.name == name; });
  if (found == facets.end()) throw std::logic_error("conformance: no facet " + name);
  return *found;
}

ProcessState process_state() {
  ProcessState state;
  for (const Facet& facet : process_facets()) {
    if (!facet.once) state[facet.name] = facet.read();
  }
  return state;
}

std::string change_between(const Reading& before, const Reading& after) {
  std::string text;
  const auto say = [&](const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; };
  for (const auto& [what, value] : before) {
    const auto now = after.find(what);
    if (now == after.end()) {
      say(fmt::format("{} was {}, is gone", what, value));
    } else if (now->second != value) {
      say(fmt::format("{} was {}, is now {}", what, value, now->second));
    }
  }
  for (const auto& [what, value] : after) {
    if (before.count(what) == 0) say(fmt::format("{} is new: {}", what, value));
  }
  return text;
}

}  // namespace tenon::conformance
