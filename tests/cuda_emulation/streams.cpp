// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control.h"
#include "state.h"

namespace tenon::emulation {
namespace {

// A driver's queue is finite too: a call that finds it full waits.
constexpr std::size_t queue_limit = 1024;

bool is_default(cudaStream_t handle) {
  return handle == nullptr || handle == cudaStreamLegacy;
}

/// Makes later work of `stream` wait for all current work of `other`.
void push_wait(Stream& stream, const std::shared_ptr<Stream>& other) {
  if (other->executed == other->enqueued) return;
  stream.queue.push_back({[other, sequence = other->enqueued] { drain(*other, sequence); }, Reach::any});
  ++stream.enqueued;
}

class Executing {
 public:
  Executing() { state().executing = true; }
  ~Executing() { state().executing = was_; }

 private:
  const bool was_ = state().executing;
};

cudaError_t create(cudaStream_t* out_stream, unsigned flags) {
  if (out_stream == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
  auto stream = std::make_shared<Stream>();
  stream->device = caller().device;
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  current_device().streams.push_back(stream);
  *out_stream = state().streams.add(std::move(stream));
  return cudaSuccess;
}

}  // namespace

cudaError_t find_stream(cudaStream_t handle, std::shared_ptr<Stream>* out_stream) {
  if (is_default(handle)) {
    for (const auto& stream : current_device().streams) {
      if (stream->blocking && stream->capture && stream->capture->mode != cudaStreamCaptureModeRelaxed) {
        return invalidate(*stream->capture, cudaErrorStreamCaptureImplicit);
      }
    }
    *out_stream = current_device().legacy;
    return cudaSuccess;
  }
  *out_stream = state().streams.find(handle);
  return *out_stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t enqueue(const std::shared_ptr<Stream>& stream, Item item) {
  if (stream->capture) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    stream->capture->nodes.push_back({std::move(item), nullptr, nullptr});
    ++stream->clock[stream.get()];
    return cudaSuccess;
  }
  const Device& device = state().devices[static_cast<std::size_t>(stream->device)];
  if (stream->legacy) {
    for (const auto& other : device.streams) {
      if (other->blocking) push_wait(*stream, other);
    }
  } else if (stream->blocking) {
    push_wait(*stream, device.legacy);
  }
  stream->queue.push_back(std::move(item));
  ++stream->enqueued;
  while (stream->queue.size() > queue_limit) run_next(*stream);
  return cudaSuccess;
}

void run(const Item& item, int device) {
  ++state().counts[item.kind];
  set_reach(item.reach, device);
  item.work();
}

void run_next(Stream& stream) {
  Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  Device& device = state().devices[static_cast<std::size_t>(stream.device)];
  if (device.pending_fault != cudaSuccess) device.lost = std::exchange(device.pending_fault, cudaSuccess);
  if (device.lost == cudaSuccess) {
    const Executing executing;
    run(item, stream.device);
  }
  ++stream.executed;
}

void drain(Stream& stream, std::uint64_t sequence) {
  while (stream.executed < sequence && !stream.queue.empty()) run_next(stream);
}
void drain(Stream& stream) {
  drain(stream, stream.enqueued);
}
void drain_device(int device) {
  auto& streams = state().devices[static_cast<std::size_t>(device)].streams;
  for (const auto& stream : std::vector(streams)) drain(*stream);
  // A destroyed stream is now held only by this list and by work that has run.
  std::erase_if(streams, [](const std::shared_ptr<Stream>& stream) { return stream.use_count() == 1; });
}

cudaError_t outcome(int device) {
  Device& d = state().devices[static_cast<std::size_t>(device)];
  if (d.pending_fault != cudaSuccess) d.lost = std::exchange(d.pending_fault, cudaSuccess);
  return d.lost;
}

std::size_t static_shared_bytes(const void* kernel) {
  const auto at = state().static_shared_bytes.find(kernel);
  return at == state().static_shared_bytes.end() ? 0 : at->second;
}

std::size_t allowed_shared_bytes(const void* kernel) {
  const auto& allowed = current_device().allowed_shared_bytes;
  const auto at = allowed.find(kernel);
  return at == allowed.end() ? default_shared_bytes - std::min(default_shared_bytes, static_shared_bytes(kernel)) : at->second;
}

namespace {

int attribute_of(cudaDeviceAttr attribute, int device) {
  int value = 0;
  device_attribute(&value, attribute, device);
  return value;
}

/// What a cooperative launch of so many blocks returns.
cudaError_t residency(std::uint64_t blocks, unsigned threads, std::size_t shared_bytes, int device) {
  const auto attribute = [device](cudaDeviceAttr which) { return static_cast<std::uint64_t>(attribute_of(which, device)); };
  if (attribute(cudaDevAttrCooperativeLaunch) == 0) return cudaErrorNotSupported;
  constexpr std::uint64_t warp = 32, reserved_bytes = 1 << 10;  // of shared memory, by each block
  const std::uint64_t of_multiprocessor =
      std::min({attribute(cudaDevAttrMaxBlocksPerMultiprocessor),
                attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / ((threads + warp - 1) / warp * warp),
                attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / (shared_bytes + reserved_bytes)});
  return blocks <= of_multiprocessor * attribute(cudaDevAttrMultiProcessorCount) ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}

enum class Form { plain, early, cooperative };

void launch(cudaStream_t handle, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared, Form form) {
  call_on("cudaLaunchKernel", handle, [&](const std::shared_ptr<Stream>& stream) {
    if (stream->device != caller().device) return cudaErrorInvalidResourceHandle;
    const auto sizes = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
    if (std::find(sizes.begin(), sizes.end(), 0u) != sizes.end() || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 ||
        block.x > 1024 || block.y > 1024 || block.z > 64 || block.x * block.y * block.z > 1024) {
      return cudaErrorInvalidConfiguration;
    }
    if (!is_allowed(shared)) return cudaErrorInvalidValue;
    std::function<void(bool)> set_open;
    if (form == Form::cooperative) {
      const cudaError_t error =
          residency(std::uint64_t{grid.x} * grid.y * grid.z, block.x * block.y * block.z, shared.bytes, stream->device);
      if (error != cudaSuccess) return error;
    }
    if (form == Form::early) set_open = [device = stream->device](bool open) { set_reach(open ? Reach::own : Reach::none, device); };
    const bool cooperative = form == Form::cooperative;
    return enqueue(stream, {[=, body = std::move(body)] { run_grid(grid, block, state().order, body, shared, set_open, cooperative); },
                            Reach::own, ItemKind::kernel, shared});
  });
}

}  // namespace

void launch(cudaStream_t handle, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared) {
  launch(handle, grid, block, std::move(body), shared, Form::plain);
}
void launch_early(cudaStream_t handle, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared) {
  launch(handle, grid, block, std::move(body), shared, Form::early);
}
void launch_cooperative(cudaStream_t handle, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared) {
  launch(handle, grid, block, std::move(body), shared, Form::cooperative);
}

cudaError_t enqueue(cudaStream_t handle, std::function<void()> work) {
  return call_on("enqueue", handle, [&](const std::shared_ptr<Stream>& stream) {
    return enqueue(stream, {std::move(work), Reach::own, ItemKind::library_call});
  });
}

}  // namespace tenon::emulation

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* out_stream) {
  return call("cudaStreamCreate", [&] { return create(out_stream, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out_stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] { return create(out_stream, flags); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out_stream, unsigned flags, int) {
  return call("cudaStreamCreateWithPriority", [&] { return create(out_stream, flags); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* out_least, int* out_greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&] {
    if (out_least != nullptr) *out_least = 0;
    if (out_greatest != nullptr) *out_greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out_attributes, const void* kernel) {
  return call("cudaFuncGetAttributes", [&] {
    if (out_attributes == nullptr) return cudaErrorInvalidValue;
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    int major = 0, minor = 0;
    device_attribute(&major, cudaDevAttrComputeCapabilityMajor, caller().device);
    device_attribute(&minor, cudaDevAttrComputeCapabilityMinor, caller().device);
    *out_attributes = {};
    out_attributes->sharedSizeBytes = static_shared_bytes(kernel);
    out_attributes->binaryVersion = out_attributes->ptxVersion = 10 * major + minor;
    return cudaSuccess;
  });
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&] {
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    const std::size_t limit = static_cast<std::size_t>(attribute_of(cudaDevAttrMaxSharedMemoryPerBlockOptin, caller().device));
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0) return cudaErrorInvalidValue;
    if (static_cast<std::size_t>(value) + static_shared_bytes(kernel) > limit) return cudaErrorInvalidValue;
    current_device().allowed_shared_bytes[kernel] = static_cast<std::size_t>(value);
    return cudaSuccess;
  });
}

// Returns at once, as in CUDA: pending work of the stream runs when the device or one of its events is waited for.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call(
      "cudaStreamDestroy",
      [&] {
        const std::shared_ptr<Stream> stream = state().streams.take(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (stream->capture) {
          invalidate(*stream->capture, cudaSuccess);
          stream->capture->members.erase(stream);
          if (stream->capture->origin == stream) std::erase(state().captures, stream->capture);
          stream->capture = nullptr;
        }
        if (stream->queue.empty()) std::erase(state().devices[static_cast<std::size_t>(stream->device)].streams, stream);
        return cudaSuccess;
      },
      Lost::allows);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call_on("cudaStreamSynchronize", handle, [&](const std::shared_ptr<Stream>& stream) {
    if (const cudaError_t error = refuse_in_capture(*stream); error != cudaSuccess) return error;
    ++state().waits;
    drain(*stream);
    return outcome(stream->device);
  });
}

// Makes progress by one item, so that polling terminates and a single query guarantees nothing.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call_on("cudaStreamQuery", handle, [&](const std::shared_ptr<Stream>& stream) {
    if (const cudaError_t error = refuse_in_capture(*stream); error != cudaSuccess) return error;
    if (stream->queue.empty()) return outcome(stream->device);
    run_next(*stream);
    if (const cudaError_t error = outcome(stream->device); error != cudaSuccess) return error;
    return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [&] {
    for (const auto& stream : current_device().streams) {
      if (stream->capture) return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
    }
    drain_device(caller().device);
    return outcome(caller().device);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return call_on("cudaLaunchHostFunc", handle, [&](const std::shared_ptr<Stream>& stream) {
    if (function == nullptr) return cudaErrorInvalidValue;
    return enqueue(stream, {[=] { function(data); }, Reach::none});
  });
}

}  // extern "C"
