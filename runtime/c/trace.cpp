// SPDX-License-Identifier: Apache-2.0
// Traces of contexts in the C API.
#include <tenon/trace.h>

#include "c/json.h"
#include "exec/context_state.h"
#include "exec/trace.h"

struct TenonTrace final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::trace;
  explicit TenonTrace(const tenon::Context& context) : Object(kind_of), value(context) {}
  tenon::Trace value;
};

using namespace tenon;
using namespace tenon::c;

namespace {

exec::TraceRecorder& recorder_of(const TenonContext* context) {
  return *get(context, "context").value.state()->trace;
}

}  // namespace

TenonError* tenon_trace_start(const TenonContext* context, TenonTrace** out_trace) {
  return guard(__func__, [&] {
    required(out_trace, "out_trace");
    *out_trace = new TenonTrace(get(context, "context").value);
  });
}

TenonError* tenon_trace_stop(TenonTrace* trace) {
  return guard(__func__, [&] { get(trace, "trace").value.stop(); });
}

TenonError* tenon_trace_json(const TenonTrace* trace, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    *out_json = new_text(get(trace, "trace").value.json());
  });
}

TenonError* tenon_trace_write(const TenonTrace* trace, const char* path) {
  return guard(__func__, [&] { get(trace, "trace").value.write(text(path, "path")); });
}

TenonError* tenon_trace_report(const TenonTrace* trace, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const Trace& own = get(trace, "trace").value;
    Json kernels = Json::array();
    for (const Trace::Kernel& kernel : own.kernels()) {
      kernels.push_back({{"node", kernel.node},
                         {"op", kernel.op},
                         {"device", kernel.device},
                         {"algorithm", kernel.algorithm},
                         {"node_id", kernel.node_id},
                         {"runs", kernel.runs},
                         {"duration_ns", kernel.duration_ns},
                         {"best_ns", kernel.best_ns},
                         {"flops", kernel.flops},
                         {"size_bytes", kernel.size_bytes},
                         {"nodes", kernel.nodes}});
    }
    *out_json = new_json({{"kernels", kernels}, {"events", own.event_count()}, {"dropped", own.dropped_count()}});
  });
}

TenonError* tenon_trace_begin_span(const TenonContext* context, const char* name) {
  return guard(__func__, [&] {
    required(name, "name");
    if (exec::TraceRecorder& recorder = recorder_of(context); recorder.on()) recorder.begin_span(name);
  });
}

TenonError* tenon_trace_end_span(const TenonContext* context) {
  return guard(__func__, [&] {
    recorder_of(context).end_span();  // also if the recording ended within the span
  });
}
