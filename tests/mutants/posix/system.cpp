// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace tenon::mutants {

tenon_backend_query_fn unmodified_query() {
  static void* const library = dlopen("$ORIGIN/libtenon_unmodified.so", RTLD_NOW | RTLD_LOCAL);
  static void* const symbol = library == nullptr ? nullptr : dlsym(library, TENON_BACKEND_QUERY_SYMBOL);
  return reinterpret_cast<tenon_backend_query_fn>(symbol);
}

void set_variable(const char* name, const char* value) {
  setenv(name, value, 1);
}

void clear_umask() {
  umask(0);
}

void leave_file_open() {
  static_cast<void>(open("/dev/null", O_RDONLY));
}

void lower_file_limit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  --limit.rlim_cur;
  setrlimit(RLIMIT_NOFILE, &limit);
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

}  // namespace tenon::mutants
