// SPDX-License-Identifier: Apache-2.0
#include "place.h"

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <tenon/stream.h>

#include "platform/per_thread.h"

namespace tenon::shim {
namespace {

/// Never destroyed, because programs may call BLAS until they exit.
struct Home {
  const Context context;
  Device device = context.default_device();
  bool host_addressable = (device.info().flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0;
  bool inline_streams = (device.info().flags & TENON_DEVICE_INLINE_STREAMS) != 0;
  Place common{device, blas::Queue(device), host_addressable};

  explicit Home(const Config& config) : context(config) {
    const DeviceInfo& info = device.info();
    if (context.config().logging.level < LogLevel::info) return;
    std::fprintf(stderr, "libtenon_blas: backend '%s' executes on %s (%s)\n", info.backend.c_str(), info.name.c_str(),
                 info.product.c_str());
  }
};

/// The result of the first call: a Home, or its error. Without the device that the configuration selects, and with
/// TENON_BLAS_FALLBACK=reference, the Home is on the reference backend, which is said.
struct Start {
  const Home* home = nullptr;
  Status status = Status::ok;
  std::string failure;

  Start() {
    attempt([] { return resolve_config(); });
    if (home != nullptr || process_environment(fallback_variable) != "reference") return;
    std::fprintf(stderr, "libtenon_blas: %s\nlibtenon_blas: %s=reference: the backend 'reference' computes, correctly and slowly\n",
                 failure.c_str(), fallback_variable);
    attempt([] {
      Config config;
      config.backends.use = {"reference"};
      config.device = "reference";
      return config;
    });
  }

 private:
  void attempt(Config (*configure)()) {
    try {
      home = new Home(configure());
    } catch (const Error& error) {
      status = error.status();
      failure = error.what();
    } catch (const std::exception& error) {
      status = Status::internal;
      failure = error.what();
    }
  }
};

const Home& home() {
  static const Start& start = *new Start;
  if (start.home == nullptr) throw Error(start.status, start.failure);
  return *start.home;
}

constinit const platform::PerThread<std::optional<Place>> own;

/// The place of this thread. Calls that come when it has ended, at exit, use the common place.
const Place& own_place(const Home& here) {
  if (platform::own_thread_values_ended()) return here.common;
  std::optional<Place>& place = *own;
  if (!place) place.emplace(Place{here.device, blas::Queue(Stream(here.device)), here.host_addressable});
  return *place;
}

}  // namespace

const Place& place() {
  const Home& here = home();
  return here.inline_streams ? here.common : own_place(here);
}

}  // namespace tenon::shim
