// SPDX-License-Identifier: Apache-2.0
// capture.cpp - a stream's work recorded as a CUDA graph and replayed with one launch.
#include "device/device.h"

namespace tenon::cuda {
namespace {

class Graph final : public sdk::Capture {
 public:
  /// Takes ownership of the graph.
  Graph(Device& device, cudaGraph_t recorded, std::shared_ptr<FaultRecord> faults, Attached::All attached)
      : device_(device), faults_(std::move(faults)), attached_(std::move(attached)) {
    const cudaError_t error = cudaGraphInstantiate(&executable_, recorded, 0);
    cudaGraphDestroy(recorded);
    device_.check(error, "cudaGraphInstantiate");
  }
  ~Graph() override { cudaGraphExecDestroy(executable_); }
  void replay(sdk::Stream& stream) override {
    device_.enter();
    auto& queue = static_cast<Stream&>(stream);
    device_.check(cudaGraphLaunch(executable_, queue.handle()), "cudaGraphLaunch");
    queue.watch(faults_);
  }

 private:
  Device& device_;
  cudaGraphExec_t executable_ = nullptr;
  std::shared_ptr<FaultRecord> faults_;  ///< where the recorded kernels report faults
  Attached::All attached_;               ///< their workspaces, used only by this recording
};

}  // namespace

void Stream::begin_capture() {
  device_.enter();
  // Relaxed: this thread may submit work to other streams and wait for it during the recording.
  device_.check(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  capturing_ = true;
  outside_ = attached.exchange({});
}

std::unique_ptr<sdk::Capture> Stream::end_capture() {
  capturing_ = false;
  Attached::All recording = attached.exchange(std::move(outside_));
  outside_.clear();
  device_.enter();
  cudaGraph_t recorded = nullptr;
  device_.check(cudaStreamEndCapture(handle_, &recorded), "cudaStreamEndCapture");
  return std::make_unique<Graph>(device_, recorded, faults_, std::move(recording));
}

}  // namespace tenon::cuda
