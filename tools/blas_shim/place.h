// SPDX-License-Identifier: Apache-2.0
// place.h - the context of this library, created by the first call and never destroyed, and the device that calls run on.
#pragma once

#include <tenon/blas.h>
#include <tenon/context.h>

namespace tenon::shim {

/// The environment variable that says what happens without the device that the configuration selects: `abort`, the default, ends the
/// program with a message at the first call; `reference` computes on the reference backend.
constexpr const char* fallback_variable = "TENON_BLAS_FALLBACK";

/// The device and queue that the calls of a thread run on.
struct Place {
  Device device;
  blas::Queue queue;
  bool host_addressable;  ///< the device accesses host memory, so nothing is copied
};

/// The place of the calling thread. Devices with inline streams share one; on others each thread has its own stream.
/// Errors  those of resolve_config and Context. If the first call fails, every later one reports the same error.
const Place& place();

}  // namespace tenon::shim
