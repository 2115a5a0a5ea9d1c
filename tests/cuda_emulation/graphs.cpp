// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "state.h"

namespace tenon::emulation {
namespace {

/// True if the capture forbids unsafe calls to the calling thread, by the rules of cudaThreadExchangeStreamCaptureMode.
bool forbids(const Capture& capture) {
  if (capture.mode == cudaStreamCaptureModeRelaxed || caller().mode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return capture.mode == cudaStreamCaptureModeGlobal && caller().mode == cudaStreamCaptureModeGlobal;
}

void finish(const std::shared_ptr<Capture>& capture) {
  for (const auto& member : capture->members) {
    member->capture = nullptr;
    member->clock.clear();
  }
  capture->members.clear();
  capture->origin = nullptr;
  std::erase(state().captures, capture);
}

/// True if all work captured on other streams precedes the end of the origin stream.
bool joined(const Capture& capture) {
  for (const auto& member : capture.members) {
    const auto own = member->clock.find(member.get());
    if (own == member->clock.end()) continue;
    const auto known = capture.origin->clock.find(member.get());
    if (known == capture.origin->clock.end() || known->second < own->second) return false;
  }
  return true;
}

/// True if all kernels may have their dynamic shared memory: limits may have changed since they were recorded.
bool is_allowed(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return emulation::is_allowed(node.item.shared); });
}

/// `moments`: of each node that records an event or waits for one.
void run_nodes(const Graph& graph, const std::vector<std::shared_ptr<Moment>>& moments, int device) {
  std::size_t next = 0;
  for (const Node& node : graph.nodes) {
    if (node.record) {
      moments[next]->reached = true;
      moments[next++]->time = std::chrono::steady_clock::now();
    } else if (node.wait) {
      if (const auto& moment = moments[next++]; moment && !moment->reached) reach(*moment);
    } else {
      run(node.item, device);
    }
  }
}

}  // namespace

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return error;
}

cudaError_t refuse_in_capture() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : state().captures) {
    if (forbids(*capture)) error = invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return error;
}

cudaError_t refuse_in_capture(Stream& stream) {
  if (stream.capture) return invalidate(*stream.capture, cudaErrorStreamCaptureUnsupported);
  return refuse_in_capture();
}

void join_capture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture, const Clock& clock) {
  stream->capture = capture;
  capture->members.insert(stream);
  for (const auto& [other, count] : clock) stream->clock[other] = std::max(stream->clock[other], count);
  // A stream that joins has something to wait for, even if it is only the fork.
  if (stream != capture->origin && stream->clock.count(stream.get()) == 0) stream->clock[stream.get()] = 1;
}

}  // namespace tenon::emulation

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&] {
    if (mode == nullptr) return cudaErrorInvalidValue;
    std::swap(*mode, caller().mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call_on("cudaStreamBeginCapture", handle, [&](const std::shared_ptr<Stream>& stream) {
    if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture) return cudaErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->id = ++state().captures_begun;
    capture->origin = stream;
    capture->members.insert(stream);
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    stream->clock.clear();
    stream->capture = capture;
    state().captures.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out_graph) {
  return call_on("cudaStreamEndCapture", handle, [&](const std::shared_ptr<Stream>& stream) {
    if (out_graph == nullptr) return cudaErrorInvalidValue;
    *out_graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return cudaErrorIllegalState;
    if (capture->origin != stream) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    const bool complete = joined(*capture);
    finish(capture);
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (!complete) return cudaErrorStreamCaptureUnjoined;
    auto graph = std::make_shared<Graph>();
    graph->nodes = std::move(capture->nodes);
    *out_graph = state().graphs.add(std::move(graph));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* out_status) {
  return call_on("cudaStreamIsCapturing", handle, [&](const std::shared_ptr<Stream>& stream) {
    *out_status = !stream->capture           ? cudaStreamCaptureStatusNone
                  : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", [&] {
    const std::shared_ptr<Graph> graph = state().graphs.find(handle);
    if (!graph || count == nullptr) return cudaErrorInvalidValue;
    if (nodes != nullptr) {
      for (std::size_t i = 0; i < *count; ++i) {
        nodes[i] = i < graph->nodes.size() ? reinterpret_cast<cudaGraphNode_t>(&graph->nodes[i]) : nullptr;
      }
    }
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out_executable, cudaGraph_t handle, unsigned long long) {
  return call("cudaGraphInstantiate", [&] {
    const std::shared_ptr<Graph> graph = state().graphs.find(handle);
    if (!graph || out_executable == nullptr || !is_allowed(*graph)) return cudaErrorInvalidValue;
    *out_executable = state().executables.add(std::make_shared<Graph>(*graph));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return call_on("cudaGraphLaunch", stream_handle, [&](const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Graph> graph = state().executables.find(handle);
    if (!graph || !is_allowed(*graph)) return cudaErrorInvalidValue;
    if (stream->capture) {
      if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      stream->capture->nodes.insert(stream->capture->nodes.end(), graph->nodes.begin(), graph->nodes.end());
      ++stream->clock[stream.get()];
      return cudaSuccess;
    }
    std::vector<std::shared_ptr<Moment>> moments, records;
    for (const Node& node : graph->nodes) {
      if (node.wait) moments.push_back(node.wait->moment);
      if (!node.record) continue;
      records.push_back(std::make_shared<Moment>());
      records.back()->stream = stream;
      moments.push_back(records.back());
      node.record->moment = records.back();
      node.record->captured = false;
    }
    const cudaError_t error =
        enqueue(stream, {[graph, moments, device = stream->device] { run_nodes(*graph, moments, device); }, Reach::any});
    for (const auto& record : records) record->sequence = stream->enqueued;
    return error;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return call(
      "cudaGraphExecDestroy", [&] { return state().executables.take(handle) ? cudaSuccess : cudaErrorInvalidValue; }, Lost::allows);
}
cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return call(
      "cudaGraphDestroy", [&] { return state().graphs.take(handle) ? cudaSuccess : cudaErrorInvalidValue; }, Lost::allows);
}

}  // extern "C"
