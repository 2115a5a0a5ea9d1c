// SPDX-License-Identifier: Apache-2.0
#include "c/run.h"

namespace tenon::c {

RunOptions run_options(const TenonRunOptions* options) {
  const TenonRunOptions given = options_of(options, "options");
  RunOptions run;
  run.threads = given.threads;
  run.priority = given.priority;
  if (given.cancellation != nullptr) run.stop = get(given.cancellation, "options.cancellation").source.get_token();
  return run;
}

}  // namespace tenon::c

using namespace tenon::c;

TenonError* tenon_cancellation_create(TenonCancellation** out_cancellation) {
  return guard(__func__, [&] { *required(out_cancellation, "out_cancellation") = new TenonCancellation(); });
}

TenonError* tenon_cancel(const TenonCancellation* cancellation) {
  return guard(__func__, [&] { get(cancellation, "cancellation").source.request_stop(); });
}

TenonError* tenon_cancellation_requested(const TenonCancellation* cancellation, uint32_t* out_requested) {
  return guard(__func__, [&] {
    required(out_requested, "out_requested");
    *out_requested = get(cancellation, "cancellation").source.stop_requested() ? 1 : 0;
  });
}
