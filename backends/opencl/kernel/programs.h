// SPDX-License-Identifier: Apache-2.0
// programs.h - programs compiled at run time, one for each source and its options, kept for the life of the device.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/sdk/host.h>

#include "kernel/source.h"
#include "libraries/opencl.h"

namespace tenon::opencl {

/// Threads  any. A kernel object is used by one thread at a time: Device::submission.
class Programs {
 public:
  Programs(sdk::Host host, cl_context context, cl_device_id device);
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// A kernel of kernel/common.cl followed by `source`, compiled with `options` ("-DT=float").
  /// Errors  INTERNAL with the compiler's log
  cl_kernel kernel(const Source& source, const std::string& options, const char* function);

 private:
  struct Entry {
    cl_program program = nullptr;
    std::map<std::string, cl_kernel> kernels;
  };
  cl_program build(const Source& source, const std::string& options);
  cl_program build_from_binary(const std::string& file, const std::string& key, const std::string& options);
  void store_binary(cl_program program, const std::string& file, const std::string& key);
  std::string log_of(cl_program program) const;

  const sdk::Host host_;
  const cl_context context_;
  const cl_device_id device_;
  std::string device_key_;  ///< name and driver of the device
  std::string common_options_;
  std::string cache_folder_;  ///< empty: nothing is kept
  std::mutex mutex_;
  std::map<std::pair<const Source*, std::string>, Entry> entries_;
};

}  // namespace tenon::opencl
