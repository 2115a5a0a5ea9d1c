// SPDX-License-Identifier: Apache-2.0
// launch.h - enqueues one kernel: its arguments in order, then how many work-items.
//
//   Launch(call, sources::gather, "gather", types<T>()).out(call, 0).in(call, 0).value(n).over(count);
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/sdk/kernel.h>

#include "device/device.h"
#include "kernel/sources.h"

namespace tenon::opencl {

inline Stream& stream_of(const sdk::Call& call) {
  return static_cast<Stream&>(sdk::stream_of(call.stream));
}

inline bool computes_f64(const sdk::Call& call) {
  return (static_cast<Device*>(call.device)->description().dtypes & TENON_DTYPE_BIT(TENON_DTYPE_F64)) != 0;
}

/// The type of OpenCL C that holds an element; f16 and bf16 are their bits.
template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_same_v<T, std::int8_t>) return "char";
  if constexpr (std::is_same_v<T, std::int16_t>) return "short";
  if constexpr (std::is_same_v<T, std::int32_t>) return "int";
  if constexpr (std::is_same_v<T, std::int64_t>) return "long";
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, bool>) return "uchar";
  if constexpr (std::is_same_v<T, std::uint16_t> || std::is_same_v<T, sdk::Half> || std::is_same_v<T, sdk::BFloat16>) return "ushort";
  if constexpr (std::is_same_v<T, std::uint32_t>) return "uint";
  if constexpr (std::is_same_v<T, std::uint64_t>) return "ulong";
}
constexpr const char* unsigned_name(std::size_t size) {
  return size == 1 ? "uchar" : size == 2 ? "ushort" : size == 4 ? "uint" : "ulong";
}
/// The options for kernels over elements of T.
template <class T>
std::string types() {
  std::string options = std::string("-DT=") + type_name<T>();
  if constexpr (std::is_floating_point_v<T>) options += " -DT_FLOATING";
  if constexpr (std::is_same_v<T, double>) options += " -DT_F64";
  if constexpr (std::is_integral_v<T>) options += std::string(" -DUNSIGNED=") + unsigned_name(sizeof(T));
  return options;
}
/// The options for kernels that only move elements: they see unsigned integers of their size.
template <class T>
std::string moved_types() {
  return std::string("-DT=") + unsigned_name(sizeof(T));
}

/// Threads  one; the device's other launches wait until it has been submitted
class Launch {
 public:
  static constexpr std::size_t group_size = 128;  ///< work-items of a group, where a kernel does not ask for its own

  Launch(Stream& stream, const Source& source, const char* function, const std::string& options)
      : stream_(stream),
        name_(function),
        kernel_(stream.device().programs().kernel(source, options, function)),
        lock_(stream.device().submission) {}
  Launch(const sdk::Call& call, const Source& source, const char* function, const std::string& options)
      : Launch(stream_of(call), source, function, options) {}

  /// The parameters of BUFFER: a buffer and the offset in it. NULL: no buffer.
  Launch& address(const void* address) { return at(stream_.device().place_of(address)); }
  Launch& at(const Place& place) {
    argument(&place.buffer, sizeof place.buffer);
    return value(static_cast<cl_ulong>(place.offset));
  }
  /// Operands of a call. Absent ones have no buffer, nor do empty ones, whose addresses mean nothing.
  Launch& in(const sdk::Call& call, std::uint32_t i) { return address(call.has_input(i) ? data_of(call.inputs[i]) : nullptr); }
  Launch& out(const sdk::Call& call, std::uint32_t i) { return address(call.has_output(i) ? data_of(call.outputs[i]) : nullptr); }
  template <class T>
  Launch& value(const T& value) {
    argument(&value, sizeof value);
    return *this;
  }
  /// The parameters of FAULT.
  Launch& fault(const sdk::Call& call, tenon_op op) {
    const cl_mem record = stream_.faults().record_for_kernel();
    argument(&record, sizeof record);
    return value(static_cast<cl_uint>(op)).value(static_cast<cl_ulong>(call.node_id));
  }
  /// At least one work-item for each of `items`, in groups of `group`; nothing for 0. The launch is over then: another one may begin.
  void over(std::int64_t items, std::size_t group = group_size) {
    const std::unique_lock lock = std::move(lock_);
    if (items <= 0) return;
    const std::size_t count = (static_cast<std::size_t>(items) + group - 1) / group * group;
    stream_.device().check(api().clEnqueueNDRangeKernel(stream_.queue(), kernel_, 1, nullptr, &count, &group, 0, nullptr, nullptr), name_);
  }

 private:
  static const void* data_of(const sdk::Operand& x) { return x.count == 0 ? nullptr : x.data; }
  void argument(const void* value, std::size_t size) { stream_.device().check(api().clSetKernelArg(kernel_, next_++, size, value), name_); }

  Stream& stream_;
  const char* name_;
  cl_kernel kernel_;
  std::unique_lock<std::mutex> lock_;
  cl_uint next_ = 0;
};

}  // namespace tenon::opencl
