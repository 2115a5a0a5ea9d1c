// SPDX-License-Identifier: Apache-2.0
// handles.h - the ABI's opaque handles that are used in more than one file, and a device's memory statistics.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/backend.h>
#include <tenon/sdk/device.h>

namespace tenon::sdk {
struct Timing;

inline std::uint64_t new_stream_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}
}  // namespace tenon::sdk

struct tenon_stream {
  std::unique_ptr<tenon::sdk::Stream> stream;
  bool recording = false;                                         ///< between begin and end of the capture block
  std::vector<std::shared_ptr<tenon::sdk::Timing>> timings = {};  ///< of the profiled plans in this recording
  std::uint64_t id = tenon::sdk::new_stream_id();                 ///< unlike the address, never used again
};

namespace tenon::sdk {

/// The statistics of memory_stats: allocations of the core and of plans.
/// Threads  every member may be called from any thread.
class MemoryStats {
 public:
  void add(std::uint64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    stats_.live_size_bytes += size_bytes;
    stats_.allocation_count += 1;
    if (stats_.live_size_bytes > stats_.peak_size_bytes) stats_.peak_size_bytes = stats_.live_size_bytes;
  }
  void remove(std::uint64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    stats_.live_size_bytes -= size_bytes;
  }
  tenon_memory_stats read() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  mutable std::mutex mutex_;
  tenon_memory_stats stats_{};
};

}  // namespace tenon::sdk

struct tenon_backend {
  std::unique_ptr<tenon::sdk::Backend> backend;
  const tenon::sdk::KernelRow* rows;
  std::uint64_t combined_dtypes = 0;  ///< of collectives
  bool shut_down = false;
  std::mutex mutex;
  std::set<tenon_device*> open;  ///< devices, for a shutdown before they are closed
};
struct tenon_device {
  tenon_backend* backend;
  std::unique_ptr<tenon::sdk::Device> device;
  const tenon::sdk::KernelRow* rows;
  tenon::sdk::MemoryStats memory_stats;
};
