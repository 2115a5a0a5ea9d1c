// SPDX-License-Identifier: Apache-2.0
// tenon-probe FILE: loads a plugin as a program would, destroys its backend, unloads it if it can be, and ends. If the plugin crashes,
// hangs or exits, it does so here. Whether the plugin is usable is for the program itself to find out: a refusal in order is a success.
//
// It sends one letter per phase to the program that asks (loader/child.h).
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
  const auto channel = tenon::platform::MessageChannel::to_parent();
  if (argc != 2 || !channel) {
    std::fputs("tenon-probe: expected a backend file, and a pipe to the program that asks; programs that use Tenon start it\n", stderr);
    return 2;
  }
  const tenon::platform::MessageChannel& messages = *channel;
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
