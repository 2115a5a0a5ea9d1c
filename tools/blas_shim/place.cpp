#include "place.h"

#include <string>

#include <tenon/stream.h>

#include "core/log.h"

namespace tenon::shim {
namespace {

/// Never destroyed: programs call BLAS until their very end.
struct Home {
  Context context;
  Device device = context.default_device();
  bool near = (device.info().flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0;
  bool shared = (device.info().flags & TENON_DEVICE_INLINE_STREAMS) != 0;
  Place common{device, blas::Queue(device), near};

  Home() {
    const DeviceInfo& info = device.info();
    log::info("libtenon_blas: backend '{}' computes, on {} ({})", info.backend, info.name, info.product);
  }
};

/// What the first call came to.
struct Start {
  const Home* home = nullptr;
  Status status = Status::ok;
  std::string failure;

  Start() {
    try {
      home = new Home;
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

/// A thread's own place, and whether the thread has come to its end: what runs even later, at exit, takes the common one.
struct Own {
  const Place* place;
  bool over;
};
thread_local Own own{nullptr, false};
struct OwnEnd {
  ~OwnEnd() {
    delete own.place;
    own = {nullptr, true};
  }
};

const Place& own_place(const Home& here) {
  if (own.place != nullptr) return *own.place;
  if (own.over) return here.common;
  own.place = new Place{here.device, blas::Queue(Stream(here.device)), here.near};
  static thread_local const OwnEnd end;
  (void)end;
  return *own.place;
}

}  // namespace

const Place& place() {
  const Home& here = home();
  return here.shared ? here.common : own_place(here);
}

}  // namespace tenon::shim
