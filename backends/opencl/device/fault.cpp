// SPDX-License-Identifier: Apache-2.0
#include "device/fault.h"

namespace tenon::opencl {
namespace {

constexpr cl_uint clear = 0;

}  // namespace

void FaultReading::report() {
  if (examined.exchange(true) || record.state == 0) return;
  throw sdk::Error(TENON_INVALID_ARGUMENT, text_of(record), record.node_id);
}

Faults::Faults(cl_context context, cl_command_queue queue, std::mutex& submission) : queue_(queue), submission_(submission) {
  cl_int error = CL_SUCCESS;
  record_ = api().clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(FaultRecord), nullptr, &error);
  check(error, "clCreateBuffer");
  check(api().clEnqueueFillBuffer(queue_, record_, &clear, sizeof clear, 0, sizeof(FaultRecord), 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
}

Faults::~Faults() {
  api().clReleaseMemObject(record_);
}

FaultReadings Faults::read() {
  const std::lock_guard lock(submission_);
  std::erase_if(pending_, [](const auto& reading) { return reading->examined.load(); });
  if (dirty_) {
    auto reading = std::make_shared<FaultReading>();
    check(api().clEnqueueReadBuffer(queue_, record_, CL_FALSE, 0, sizeof(FaultRecord), &reading->record, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    pending_.push_back(std::move(reading));
    check(api().clEnqueueFillBuffer(queue_, record_, &clear, sizeof clear, 0, sizeof(FaultRecord), 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
    dirty_ = false;
  }
  return pending_;
}

}  // namespace tenon::opencl
