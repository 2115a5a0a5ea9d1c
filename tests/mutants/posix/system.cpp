// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <string>

namespace tenon::mutants {

tenon_backend_query_fn query_of_neighbour(const char* file) {
  void* const library = dlopen((std::string("$ORIGIN/") + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<tenon_backend_query_fn>(dlsym(library, TENON_BACKEND_QUERY_SYMBOL));
}

void crash() {
  std::raise(SIGSEGV);
}

void set_variable(const char* name, const char* value) {
  setenv(name, value, 1);
}

void change_locale() {
  std::setlocale(LC_ALL, "C.UTF-8");
}

void change_umask() {
  umask(0);
}

void stay_on_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  int last = -1;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) last = i;
  }
  CPU_ZERO(&set);
  CPU_SET(last, &set);
  sched_setaffinity(0, sizeof set, &set);
}

void lower_file_limit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  --limit.rlim_cur;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void leave_file_open() {
  static_cast<void>(open("/dev/null", O_RDONLY));
}

}  // namespace tenon::mutants
