// SPDX-License-Identifier: Apache-2.0
#include "exec/host_services.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include <tenon/error.h>

#include "core/host_memory.h"
#include "core/log.h"
#include "exec/backend_options.h"
#include "exec/run_context.h"
#include "loader/loader.h"
#include "platform/path.h"

namespace tenon::exec {
namespace {

std::atomic<std::uint64_t> allocations{0};

/// Where a backend may keep files; empty if there is no such place.
std::filesystem::path cache_folder_of(const std::string& backend) {
  const std::filesystem::path base = loader::cache_folder();
  return base.empty() ? base : base / platform::path_of(backend);
}

HostServices* self(tenon_host_context* context) {
  return reinterpret_cast<HostServices*>(context);
}

}  // namespace

/// The functions of the table.
struct Services {
  static void log(tenon_host_context* context, std::uint32_t level, const char* text) {
    log::write(level, self(context)->name_ + ": " + text);
  }
  static void* allocate(tenon_host_context*, std::uint64_t size, std::uint64_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return allocate_host(size, alignment, HostPages::huge);
  }
  static void release(tenon_host_context*, void* memory, std::uint64_t) { free_host(memory); }
  static std::uint32_t thread_count(tenon_host_context* context, const tenon_run* run) {
    const std::uint32_t all = self(context)->pool_->budget();
    return run == nullptr || run->threads == 0 ? all : std::min(all, run->threads);
  }
  static void parallel_for(tenon_host_context* context, const tenon_run* run, std::int64_t count, std::int64_t grain, ThreadPool::Body body,
                           void* argument) {
    self(context)->pool_->parallel_for(count, grain, body, argument, thread_count(context, run));
  }
  static void trace_begin(tenon_host_context* context, const char* name, std::uint64_t correlation_id) {
    TraceRecorder& trace = *self(context)->trace_;
    if (trace.on()) trace.begin_span(name, correlation_id);
  }
  static void trace_end(tenon_host_context* context) {
    TraceRecorder& trace = *self(context)->trace_;
    if (trace.on()) trace.end_span();
  }
  static const char* option(tenon_host_context* context, const char* option) {
    const auto& options = self(context)->options_;
    const auto found = options.find(option);
    return found == options.end() ? nullptr : found->second.c_str();
  }
  static const char* cache_directory(tenon_host_context* context) {
    HostServices& services = *self(context);
    std::lock_guard lock(services.mutex_);
    if (services.cache_directory_.empty()) {
      const std::filesystem::path folder = cache_folder_of(services.name_);
      if (folder.empty()) return nullptr;
      std::error_code code;
      std::filesystem::create_directories(folder, code);
      if (code) return nullptr;
      services.cache_directory_ = platform::text_of(folder);
    }
    return services.cache_directory_.c_str();
  }
  static std::uint32_t cancel_requested(tenon_host_context*, const tenon_run* run) {
    return run != nullptr && run->context != nullptr && run->context->stop.stop_requested() ? 1 : 0;
  }
  static std::uint64_t autotune_get(tenon_host_context* context, const char* key, void* out_value, std::uint64_t capacity) {
    return self(context)->autotune_.get(key, out_value, capacity);
  }
  static void autotune_put(tenon_host_context* context, const char* key, const void* value, std::uint64_t size) {
    self(context)->autotune_.put(key, {static_cast<const unsigned char*>(value), size});
  }
  static const void* extension(tenon_host_context* context, const char* name, std::uint32_t version) {
    for (const HostExtension& offered : self(context)->extensions_) {
      if (offered.name == name && offered.version == version) return offered.table;
    }
    return nullptr;
  }
};

HostServices::HostServices(const tenon_backend_info& info, std::uint32_t abi_minor, std::shared_ptr<ThreadPool> pool,
                           const std::map<std::string, std::string>& options, std::shared_ptr<TraceRecorder> trace,
                           std::vector<HostExtension> extensions)
    : name_(info.name),
      pool_(std::move(pool)),
      trace_(trace != nullptr ? std::move(trace) : std::make_shared<TraceRecorder>()),
      options_(option_values(info, options, fmt::format("backends.options.{}", info.name))),
      extensions_(std::move(extensions)),
      autotune_(cache_folder_of(name_).empty() ? std::filesystem::path() : cache_folder_of(name_) / "autotune.json",
                fmt::format("{} {}", info.version != nullptr ? info.version : "", info.build_id != nullptr ? info.build_id : "")) {
  table_.struct_size = sizeof table_;
  table_.abi_minor = abi_minor;
  table_.context = reinterpret_cast<tenon_host_context*>(this);
  table_.log = Services::log;
  table_.allocate = Services::allocate;
  table_.release = Services::release;
  table_.parallel_for = Services::parallel_for;
  table_.thread_count = Services::thread_count;
  table_.trace_begin = Services::trace_begin;
  table_.trace_end = Services::trace_end;
  table_.option = Services::option;
  table_.cache_directory = Services::cache_directory;
  table_.cancel_requested = Services::cancel_requested;
  table_.autotune_get = Services::autotune_get;
  table_.autotune_put = Services::autotune_put;
  table_.extension = Services::extension;
}

std::uint64_t HostServices::allocation_count() {
  return allocations.load();
}

}  // namespace tenon::exec
