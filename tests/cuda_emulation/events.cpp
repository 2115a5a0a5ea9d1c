// SPDX-License-Identifier: Apache-2.0
#include "state.h"

namespace tenon::emulation {

std::shared_ptr<Moment> mark(const std::shared_ptr<Stream>& stream) {
  auto moment = std::make_shared<Moment>();
  moment->stream = stream;
  enqueue(stream, {[moment] {
                     moment->reached = true;
                     moment->time = std::chrono::steady_clock::now();
                   },
                   Reach::any});
  moment->sequence = stream->enqueued;
  return moment;
}

void reach(Moment& moment) {
  drain(*moment.stream, moment.sequence);
}

namespace {

cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(stream_handle, &stream); error != cudaSuccess) return error;
  const std::shared_ptr<Event> event = state().events.find(handle);
  if (!event || event->device != stream->device) return cudaErrorInvalidResourceHandle;
  if ((flags & ~static_cast<unsigned>(cudaEventRecordExternal)) != 0) return cudaErrorInvalidValue;
  if (!stream->capture) {
    if ((flags & cudaEventRecordExternal) != 0) return cudaErrorIllegalState;  // external only has a meaning in a capture
    event->captured = false;
    event->moment = mark(stream);
    return cudaSuccess;
  }
  Capture& capture = *stream->capture;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  if ((flags & cudaEventRecordExternal) != 0) {
    capture.nodes.push_back({{}, event, nullptr});
    ++stream->clock[stream.get()];
    return cudaSuccess;
  }
  event->captured = true;
  event->moment = nullptr;
  event->capture = stream->capture;
  event->clock = stream->clock;
  return cudaSuccess;
}

cudaError_t wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, unsigned flags) {
  if (event->captured) {
    const std::shared_ptr<Capture> capture = event->capture.lock();
    if (!capture || capture->origin == nullptr) {
      return stream->capture ? invalidate(*stream->capture, cudaErrorStreamCaptureIsolation) : cudaErrorStreamCaptureIsolation;
    }
    if (stream->capture && stream->capture != capture) {
      invalidate(*capture, cudaErrorStreamCaptureMerge);
      return invalidate(*stream->capture, cudaErrorStreamCaptureMerge);
    }
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (stream->legacy) return invalidate(*capture, cudaErrorStreamCaptureImplicit);
    join_capture(stream, capture, event->clock);
    return cudaSuccess;
  }
  if (stream->capture) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if ((flags & cudaEventWaitExternal) != 0) {
      stream->capture->nodes.push_back({{}, nullptr, event});
      ++stream->clock[stream.get()];
      return cudaSuccess;
    }
    if (event->moment) return invalidate(*stream->capture, cudaErrorStreamCaptureIsolation);
    return cudaSuccess;
  }
  if ((flags & cudaEventWaitExternal) != 0) return cudaErrorIllegalState;  // it only has a meaning in a capture
  if (!event->moment) return cudaSuccess;
  return enqueue(stream, {[moment = event->moment] { reach(*moment); }, Reach::any});
}

}  // namespace
}  // namespace tenon::emulation

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* out_event) {
  return cudaEventCreateWithFlags(out_event, cudaEventDefault);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out_event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] {
    constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (out_event == nullptr || (flags & ~known) != 0) return cudaErrorInvalidValue;
    auto event = std::make_shared<Event>();
    event->device = caller().device;
    event->flags = flags;
    *out_event = state().events.add(std::move(event));
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return call(
      "cudaEventDestroy", [&] { return state().events.take(handle) ? cudaSuccess : cudaErrorInvalidResourceHandle; }, Lost::allows);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] { return record(event, stream, cudaEventRecordDefault); });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return call("cudaEventRecordWithFlags", [&] { return record(event, stream, flags); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  return call_on("cudaStreamWaitEvent", stream_handle, [&](const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Event> event = state().events.find(handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    return wait(stream, event, flags);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call("cudaEventQuery", [&] {
    const std::shared_ptr<Event> event = state().events.find(handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    if (event->captured) return cudaErrorCapturedEvent;
    if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
    if (!event->moment) return cudaSuccess;
    Moment& moment = *event->moment;
    if (!moment.reached && !moment.stream->queue.empty()) run_next(*moment.stream);
    if (const cudaError_t error = outcome(event->device); error != cudaSuccess) return error;
    return moment.reached ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call("cudaEventSynchronize", [&] {
    const std::shared_ptr<Event> event = state().events.find(handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    if (event->captured) return cudaErrorCapturedEvent;
    if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
    ++state().waits;
    if (event->moment) reach(*event->moment);
    return outcome(event->device);
  });
}

cudaError_t cudaEventElapsedTime(float* out_milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] {
    const std::shared_ptr<Event> from = state().events.find(start), to = state().events.find(end);
    if (out_milliseconds == nullptr) return cudaErrorInvalidValue;
    for (const auto& event : {from, to}) {
      if (event && event->captured) return cudaErrorCapturedEvent;
      if (!event || !event->moment || (event->flags & cudaEventDisableTiming) != 0) return cudaErrorInvalidResourceHandle;
    }
    if (from->device != to->device) return cudaErrorInvalidResourceHandle;
    if (!from->moment->reached || !to->moment->reached) return cudaErrorNotReady;
    *out_milliseconds = std::chrono::duration<float, std::milli>(to->moment->time - from->moment->time).count();
    return cudaSuccess;
  });
}

}  // extern "C"
