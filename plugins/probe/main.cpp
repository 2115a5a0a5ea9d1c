// SPDX-License-Identifier: Apache-2.0
// tenon-probe FILE: loads a plugin as a program would, destroys its backend, unloads it if it can be, and ends. If the plugin crashes,
// hangs or exits, it does so here. Whether the plugin is usable is for the program itself to find out: a refusal in order is a success.
//
// Descriptor 3 is a pipe to the program that asks: one letter per phase (loader/child.h).
#include <fcntl.h>

#include <cstdio>

#include "loader/child.h"
#include "loader/plain_host.h"

#if defined(__has_feature)
#define TENON_HAS_FEATURE(name) __has_feature(name)
#else
#define TENON_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TENON_HAS_FEATURE(address_sanitizer)
// Memory that a plugin keeps until the end is not what a probe is about.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return 1;
}
#endif

int main(int argc, char** argv) {
  using namespace tenon::loader;
  constexpr int messages = 3;
  if (argc != 2 || fcntl(messages, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs("tenon-probe: expected a backend file, and a pipe at descriptor 3; programs that use Tenon start it\n", stderr);
    return 2;
  }
  tell(messages, Phase::querying);
  PlainHost host;
  Options options;
  options.places = {{argv[1], "command line"}};
  options.make_host = [&](const tenon_backend_info&, std::uint32_t) {
    tell(messages, Phase::creating);
    return host.table();
  };
  Result result = load(options);
  tell(messages, Phase::closing);
  result.backends.clear();
  tell(messages, Phase::exiting);
  return 0;
}
