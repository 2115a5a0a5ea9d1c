// SPDX-License-Identifier: Apache-2.0
#include "device/fault.h"

namespace tenon::opencl {
namespace {

const char* stem_of(std::uint32_t op) {
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  case id:                                                                                            \
    return #stem;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return "kernel";
  }
}

constexpr cl_uint clear = 0;

}  // namespace

std::string text_of(const FaultRecord& record) {
  const std::string op = stem_of(record.op);
  if (record.kind == FaultKind::zero_divisor) return op + ": an integer divided by zero; expected divisors other than 0";
  const bool is_label = record.kind == FaultKind::label;
  return op + (is_label ? ": label " : ": index ") + std::to_string(record.value) + (is_label ? " at index " : " at position ") +
         std::to_string(record.position) + " is out of range [" + std::to_string(record.low) + ", " + std::to_string(record.high) + ")";
}

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
