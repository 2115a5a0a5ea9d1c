// host.h - the process as the kit shows it to a backend: two threads, guarded memory, everything counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/backend.h>

namespace tenon::conformance {

/// Host services that keep books. Not movable: the table points here.
/// Threads  every member may be called from any thread.
class Host {
 public:
  /// Options are answered with what is given, else with the defaults of the knobs that `info` declares. Errors: tenon::Error for an unknown
  /// knob, a value that its declaration does not allow.
  Host(const tenon_backend_info& info, std::uint32_t abi_minor, const std::map<std::string, std::string>& knobs = {});
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const tenon_host* table() const { return &table_; }
  std::int64_t allocations() const { return allocations_.load(); }
  std::int64_t live_blocks() const { return live_blocks_.load(); }
  std::int64_t log_lines() const { return log_lines_.load(); }
  /// What the backend did to its allocations that it must not: wrote beside one, released one with another size. Empty: nothing.
  std::string damage() const;

 private:
  struct Block {
    std::uint64_t size, alignment;
    unsigned char* base;
  };
  void* allocate(std::uint64_t size, std::uint64_t alignment);
  void release(void* memory, std::uint64_t size);
  static Host& of(tenon_host_context* context);

  tenon_host table_{};
  std::map<std::string, std::string> options_;
  std::atomic<std::int64_t> allocations_{0}, live_blocks_{0}, log_lines_{0};
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::string damage_;
};

}  // namespace tenon::conformance
