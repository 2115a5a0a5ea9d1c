// SPDX-License-Identifier: Apache-2.0
// cli/train_stop.h - Ctrl-C during training: the first one requests a stop, a later one ends the process.
#pragma once

#include <stop_token>

#include "platform/stop_requests.h"

namespace tenon::cli {

/// During its lifetime, the first request (platform/stop_requests.h) stops. Those of the next 2 seconds are ignored, since a key is pressed
/// twice and a closed terminal sends several; then one ends the process. At most one instance may exist at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  platform::StopRequests requests_;
};

}  // namespace tenon::cli
