// place.h - where this process's calls go: a context of its own, made at the first call and never ended, and the device it chooses.
#pragma once

#include <tenon/blas.h>
#include <tenon/context.h>

namespace tenon::shim {

/// What a thread computes on.
struct Place {
  Device device;
  blas::Queue queue;
  bool near;  ///< host pointers are addresses of the device's: nothing is copied
};

/// The calling thread's. Devices that work inline share one; on others each thread has a stream.
/// Errors  those of resolve_config and Context: what the first call met, every later one is told.
const Place& place();

}  // namespace tenon::shim
