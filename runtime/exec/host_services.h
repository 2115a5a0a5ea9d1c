// SPDX-License-Identifier: Apache-2.0
// exec/host_services.h - the services that the host offers a backend: the tenon_host table and its implementation.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/context.h>

#include "exec/autotune_cache.h"
#include "exec/thread_pool.h"
#include "exec/trace.h"

namespace tenon::exec {

/// One backend's view of the host. Outlives the backend.
/// Threads  every service may be called from any thread.
class HostServices {
 public:
  /// `trace`: null drops spans. `options`: the user's values for this backend's options. Errors: an unknown option, a value
  /// its declaration does not allow. `extensions`: what the application offers.
  HostServices(const tenon_backend_info& info, std::uint32_t abi_minor, std::shared_ptr<ThreadPool> pool,
               const std::map<std::string, std::string>& options, std::shared_ptr<TraceRecorder> trace = nullptr,
               std::vector<HostExtension> extensions = {});
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const tenon_host* table() const { return &table_; }
  const std::string& backend_name() const { return name_; }
  /// The threads of its loops, which backends may share.
  ThreadPool& pool() const { return *pool_; }
  /// Calls of `allocate` so far, by every backend of the process: tests check that training makes none.
  static std::uint64_t allocation_count();

 private:
  friend struct Services;
  tenon_host table_{};
  std::string name_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<TraceRecorder> trace_;
  std::map<std::string, std::string> options_;
  const std::vector<HostExtension> extensions_;
  std::string cache_directory_;
  std::mutex mutex_;  ///< guards cache_directory_
  AutotuneCache autotune_;
};

}  // namespace tenon::exec
