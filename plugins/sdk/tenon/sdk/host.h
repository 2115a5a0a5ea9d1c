// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/host.h - the host's services, as C++.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <type_traits>

#include <tenon/backend.h>

namespace tenon::sdk {

/// A thin view of tenon_host, for one run or for none. Copyable; lives as long as the backend, and
/// with a run as long as the call that it came with.
/// Threads  every member may be called from any thread.
class Host {
 public:
  Host() = default;
  explicit Host(const tenon_host* table, const tenon_run* run = nullptr) : table_(table), run_(run) {}
  /// The same host for the work of a run; NULL: the defaults.
  Host with(const tenon_run* run) const { return Host(table_, run); }
  const tenon_run* run() const { return run_; }

  void log(std::uint32_t level, const char* text) const { table_->log(table_->context, level, text); }

  /// Host memory, aligned; NULL when there is none.
  void* allocate(std::uint64_t size_bytes, std::uint64_t alignment_bytes = 64) const {
    return table_->allocate(table_->context, size_bytes, alignment_bytes);
  }
  void release(void* memory, std::uint64_t size_bytes) const { table_->release(table_->context, memory, size_bytes); }

  std::uint32_t thread_count() const { return table_->thread_count(table_->context, run_); }

  /// Calls body(begin, end) for ranges that cover [0, count), each at least `grain` long but for
  /// the last; returns when all are done. Rethrows the first exception of a body. A count of at
  /// most `grain` runs inline, without calling the host.
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) const {
    if (count <= 0) return;
    if (count <= grain) {
      body(std::int64_t{0}, count);
      return;
    }
    struct Shared {
      std::remove_reference_t<Body>* body;
      std::exception_ptr failure;
      std::mutex mutex;
    } shared{&body, nullptr, {}};
    table_->parallel_for(
        table_->context, run_, count, std::max<std::int64_t>(grain, 1),
        [](void* argument, std::int64_t begin, std::int64_t end) {
          auto* s = static_cast<Shared*>(argument);
          try {
            (*s->body)(begin, end);
          } catch (...) {
            std::lock_guard lock(s->mutex);
            if (!s->failure) s->failure = std::current_exception();
          }
        },
        &shared);
    if (shared.failure) std::rethrow_exception(shared.failure);
  }

  /// The user's value for a declared option, or its default; NULL for an option that was not
  /// declared.
  const char* option(const char* option) const { return table_->option(table_->context, option); }
  const char* cache_directory() const { return table_->cache_directory(table_->context); }
  /// True if the result of the run is not needed any more. Kernels need not ask: the plan does,
  /// between them.
  bool cancel_requested() const { return run_ != nullptr && table_->cancel_requested(table_->context, run_) != 0; }

  /// A choice stored before, in this run or an earlier one; empty: none.
  std::string autotune_get(const char* key) const {
    std::string value(256, '\0');
    for (;;) {
      const auto stored = static_cast<std::size_t>(table_->autotune_get(table_->context, key, value.data(), value.size()));
      const bool fits = stored <= value.size();
      value.resize(stored);
      if (fits) return value;
    }
  }
  void autotune_put(const char* key, const std::string& value) const {
    table_->autotune_put(table_->context, key, value.data(), value.size());
  }
  /// What the application offers to backends besides the ABI: a struct of this name and version that
  /// both know, and that lives as long as the backend; NULL: it offers none.
  template <class Struct>
  const Struct* extension(const char* name, std::uint32_t version) const {
    return static_cast<const Struct*>(table_->extension(table_->context, name, version));
  }
  const tenon_host* table() const { return table_; }

 private:
  const tenon_host* table_ = nullptr;
  const tenon_run* run_ = nullptr;
};

/// A span in the host's trace, as long as the object lives. Spans of a thread nest.
class Span {
 public:
  Span(const Host& host, const char* name, std::uint64_t correlation_id = 0) : table_(host.table()) {
    table_->trace_begin(table_->context, name, correlation_id);
  }
  ~Span() { table_->trace_end(table_->context); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const tenon_host* table_;
};

}  // namespace tenon::sdk
