// SPDX-License-Identifier: Apache-2.0
// loader/plain_host.h - a minimal host for a backend: memory, and loops that run inline. It counts live bytes, so that a test can detect a
// leak.
#pragma once

#include <tenon/backend.h>

#include <atomic>
#include <cstdint>

#include "platform/memory.h"

namespace tenon::loader {

class PlainHost {
 public:
  PlainHost() {
    table_.struct_size = sizeof table_;
    table_.abi_minor = TENON_ABI_MINOR;
    table_.context = reinterpret_cast<tenon_host_context*>(this);
    table_.log = [](tenon_host_context*, std::uint32_t, const char*) {};
    table_.allocate = [](tenon_host_context* context, std::uint64_t size, std::uint64_t alignment) -> void* {
      void* const memory = platform::allocate_aligned(alignment, (size + alignment - 1) / alignment * alignment);
      if (memory) self(context).live_bytes += size;
      return memory;
    };
    table_.release = [](tenon_host_context* context, void* memory, std::uint64_t size) {
      self(context).live_bytes -= size;
      platform::free_aligned(memory);
    };
    table_.parallel_for = [](tenon_host_context*, const tenon_run*, std::int64_t count, std::int64_t,
                             void (*body)(void*, std::int64_t, std::int64_t), void* argument) {
      if (count > 0) body(argument, 0, count);
    };
    table_.thread_count = [](tenon_host_context*, const tenon_run*) { return std::uint32_t{1}; };
    table_.trace_begin = [](tenon_host_context*, const char*, std::uint64_t) {};
    table_.trace_end = [](tenon_host_context*) {};
    table_.option = [](tenon_host_context*, const char*) -> const char* { return nullptr; };
    table_.cache_directory = [](tenon_host_context*) -> const char* { return nullptr; };
    table_.cancel_requested = [](tenon_host_context*, const tenon_run*) { return std::uint32_t{0}; };
    table_.autotune_get = [](tenon_host_context*, const char*, void*, std::uint64_t) { return std::uint64_t{0}; };
    table_.autotune_put = [](tenon_host_context*, const char*, const void*, std::uint64_t) {};
    table_.extension = [](tenon_host_context*, const char*, std::uint32_t) -> const void* { return nullptr; };
  }
  PlainHost(const PlainHost&) = delete;
  PlainHost& operator=(const PlainHost&) = delete;

  const tenon_host* table() const { return &table_; }

  std::atomic<std::uint64_t> live_bytes{0};

 private:
  static PlainHost& self(tenon_host_context* context) { return *reinterpret_cast<PlainHost*>(context); }
  tenon_host table_{};
};

}  // namespace tenon::loader
