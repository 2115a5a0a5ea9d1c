// SPDX-License-Identifier: Apache-2.0
// host.h - the host services that the kit gives to a backend: threads, guarded memory, counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/backend.h>

namespace tenon::conformance {

/// How parallel_for divides its work.
struct Parallelism {
  std::uint32_t threads = 2;
  /// Ranges as short as the grain allows, one after the other on the caller's thread, in an order that changes from call to call: what
  /// depends on which range ends first then differs every time.
  bool shuffled = false;
};

/// Host services that count their use. Not movable: the table points here.
/// Threads  every member may be called from any thread.
class Host {
 public:
  /// Options have the given values, else the defaults that `info` declares. Errors: tenon::Error for an
  /// unknown option, a value that its declaration does not allow.
  Host(const tenon_backend_info& info, std::uint32_t abi_minor, const std::map<std::string, std::string>& options = {},
       Parallelism parallelism = {});
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const tenon_host* table() const { return &table_; }
  std::int64_t allocations() const { return allocations_.load(); }
  std::int64_t live_blocks() const { return live_blocks_.load(); }
  std::int64_t log_lines() const { return log_lines_.load(); }
  /// How the backend misused its allocations, for example a write out of bounds or a release with another size. Empty: it did not.
  std::string damage() const;

  /// From now on `count` allocations succeed and all later ones fail, until fail_never().
  void fail_after(std::int64_t count) { allocations_left_ = count; }
  void fail_never() { allocations_left_ = -1; }
  /// Allocations that were made to fail.
  std::int64_t refusals() const { return refusals_.load(); }

  /// The context of a run. From question `number` of cancel_requested about such runs on, counted from this call, the answer is 1.
  tenon_host_run* run_context() { return reinterpret_cast<tenon_host_run*>(this); }
  void cancel_from(std::int64_t number) { questions_ = 0, cancel_from_ = number; }
  std::int64_t questions() const { return questions_.load(); }
  /// Loops that were not called for such a run.
  /// Spans of the trace that have begun and not ended.
  std::int64_t open_spans() const { return open_spans_.load(); }
  std::int64_t loops_outside_runs() const { return loops_outside_runs_.load(); }

  /// Measured choices by their key, as autotune_put gave them.
  std::map<std::string, std::vector<unsigned char>> choices() const;
  void set_choices(std::map<std::string, std::vector<unsigned char>> choices);

 private:
  struct Block {
    std::uint64_t size, alignment;
    unsigned char* base;
  };
  void* allocate(std::uint64_t size, std::uint64_t alignment);
  void release(void* memory, std::uint64_t size);
  bool may_allocate();
  bool is_run(const tenon_run* run) { return run != nullptr && run->context == run_context(); }
  std::uint32_t threads_of(const tenon_run* run) const;
  using Body = void (*)(void*, std::int64_t, std::int64_t);
  void run(Body body, void* argument, std::int64_t begin, std::int64_t end);
  void run_in_parallel(std::int64_t threads, std::int64_t count, std::int64_t grain, Body body, void* argument);
  void run_shuffled(std::int64_t count, std::int64_t grain, Body body, void* argument);
  std::uint64_t read_choice(const char* key, void* out_value, std::uint64_t capacity) const;
  void keep_choice(const char* key, const void* value, std::uint64_t size);
  static Host& of(tenon_host_context* context);

  tenon_host table_{};
  const Parallelism parallelism_;
  std::atomic<std::uint64_t> loops_{0};  ///< calls of parallel_for, from which orders are drawn
  std::map<std::string, std::string> options_;
  std::atomic<std::int64_t> allocations_{0}, live_blocks_{0}, log_lines_{0}, refusals_{0};
  std::atomic<std::int64_t> allocations_left_{-1};  ///< negative: unlimited
  std::atomic<std::int64_t> questions_{0}, cancel_from_{std::int64_t{1} << 62}, loops_outside_runs_{0}, open_spans_{0};
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::string damage_;
  std::map<std::string, std::vector<unsigned char>> choices_;
};

}  // namespace tenon::conformance
