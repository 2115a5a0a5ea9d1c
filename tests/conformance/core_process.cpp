// Process hygiene: a backend changes no process state, from its loading to its end, and leaves nothing running or open behind it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "core.h"
#include "process.h"

namespace tenon::conformance {
namespace {

/// Lets a second instance live and die, and calls `look` after each stage.
void live(const Kit& kit, const std::function<void(const char* stage)>& look) {
  auto device = std::make_unique<Device>(Beside{kit.device});
  look("create and device_open");
  expect_sane(Kit(*device, nullptr, kit.seed));
  look("copies and an execution");
  device.reset();
  look("shutdown and destroy");
}

/// Nothing of it changes, at any stage; the loading of the library and its first `create` included.
void expect_untouched(const Kit& kit, const char* name) {
  const Reading& before = kit.device.before_loading().at(name);
  const auto look = [&](const char* stage) {
    const std::string change = change_between(before, process_facet(name).read());
    if (!change.empty()) fail(fmt::format("after {}: {}", stage, change));
  };
  look("loading, create, device_open and the cases before this one");
  live(kit, look);
}

void floating_point(Kit& kit) {
  expect_untouched(kit, "floating_point");
}
void signals(Kit& kit) {
  expect_untouched(kit, "signals");
}
void locale(Kit& kit) {
  expect_untouched(kit, "locale");
}
void environment(Kit& kit) {
  expect_untouched(kit, "environment");
}
void affinity(Kit& kit) {
  expect_untouched(kit, "affinity");
}
void files(Kit& kit) {
  expect_untouched(kit, "files");
}
void limits(Kit& kit) {
  expect_untouched(kit, "limits");
}

/// A second life leaves nothing that was not there before it. What is ending gets time to end.
void expect_nothing_left(const Kit& kit, const char* name) {
  using namespace std::chrono_literals;
  live(kit, [](const char*) {});
  const Facet& facet = process_facet(name);
  const Reading before = facet.read();
  live(kit, [](const char*) {});
  std::string left;
  for (int patience = 0; patience < 40; ++patience) {
    left.clear();
    for (const auto& [what, value] : facet.read()) {
      if (before.count(what) == 0) left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", what, value);
    }
    if (left.empty()) return;
    std::this_thread::sleep_for(50ms);
  }
  fail("left behind after shutdown and destroy: " + left);
}

void threads(Kit& kit) {
  expect_nothing_left(kit, "threads");
}
void descriptors(Kit& kit) {
  expect_nothing_left(kit, "descriptors");
}

/// Standard output and error are the host's: a backend speaks through the host's log and tenon_error.
void output(Kit& kit) {
  std::string heard;
  {
    struct Listener {
      Listener() : file(memfd_create("output", MFD_CLOEXEC)) {
        std::fflush(nullptr);
        for (const int stream : {1, 2}) {
          kept[stream] = fcntl(stream, F_DUPFD_CLOEXEC, 3);
          dup2(file, stream);
        }
      }
      ~Listener() {
        std::fflush(nullptr);
        for (const int stream : {1, 2}) {
          if (kept[stream] < 0) {
            close(stream);  // it was closed before
          } else {
            dup2(kept[stream], stream);
            close(kept[stream]);
          }
        }
        char text[200];
        const ssize_t size = pread(file, text, sizeof text, 0);
        if (size > 0) heard->assign(text, static_cast<std::size_t>(size));
        close(file);
      }
      Listener(const Listener&) = delete;
      Listener& operator=(const Listener&) = delete;
      int file, kept[3] = {-1, -1, -1};
      std::string* heard = nullptr;
    } listener;
    listener.heard = &heard;
    live(kit, [](const char*) {});
  }
  if (!heard.empty()) fail(fmt::format("the backend wrote to standard output or error: \"{}\"", heard));
}

}  // namespace

std::vector<Case> core_process_cases() {
  return core_cases({
      {"process/floating_point", floating_point},
      {"process/signals", signals},
      {"process/locale", locale},
      {"process/environment", environment},
      {"process/affinity", affinity},
      {"process/files", files},
      {"process/limits", limits},
      {"process/threads", threads},
      {"process/descriptors", descriptors},
      {"process/output", output},
  });
}

}  // namespace tenon::conformance
