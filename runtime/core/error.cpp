// SPDX-License-Identifier: Apache-2.0
// core/error.cpp - names of the status codes.
#include <tenon/error.h>

namespace tenon {

const char* name_of(Status status) {
  switch (status) {
    case Status::ok:
      return "OK";
    case Status::invalid_argument:
      return "INVALID_ARGUMENT";
    case Status::unsupported:
      return "UNSUPPORTED";
    case Status::out_of_memory:
      return "OUT_OF_MEMORY";
    case Status::device_not_found:
      return "DEVICE_NOT_FOUND";
    case Status::device_lost:
      return "DEVICE_LOST";
    case Status::incompatible:
      return "INCOMPATIBLE";
    case Status::not_ready:
      return "NOT_READY";
    case Status::cancelled:
      return "CANCELLED";
    case Status::vendor_error:
      return "VENDOR_ERROR";
    case Status::internal:
      return "INTERNAL";
    case Status::forked:
      return "FORKED";
  }
  return "UNKNOWN_STATUS";  // a backend may return an undefined status
}

}  // namespace tenon
