// capture.cpp - a stream's work recorded as a CUDA graph and replayed with one launch.
#include "device.h"

namespace tenon::cuda {
namespace {

class Graph final : public sdk::Capture {
 public:
  /// Takes the graph over.
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
  std::shared_ptr<FaultRecord> faults_;  ///< to which the recorded kernels write
  Attached::All attached_;               ///< workspaces that they use: this recording's alone, as long as it can be replayed
};

}  // namespace

void Stream::begin_capture() {
  device_.enter();
  // Relaxed: what this thread gives to other streams meanwhile, and waits for, is its own business.
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
