// SPDX-License-Identifier: Apache-2.0
// sdk_testing_host.cpp - the host services, and a backend that is created and open.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "platform/memory.h"
#include "sdk_testing.h"

namespace tenon::sdk_test {

TestHost::TestHost(std::uint32_t threads) : threads_(threads) {
  const auto self = [](tenon_host_context* context) { return reinterpret_cast<TestHost*>(context); };
  static constexpr auto cast = self;
  table_.struct_size = sizeof table_;
  table_.abi_minor = TENON_ABI_MINOR;
  table_.context = reinterpret_cast<tenon_host_context*>(this);
  table_.log = [](tenon_host_context*, std::uint32_t, const char*) {};
  table_.allocate = [](tenon_host_context* context, std::uint64_t size, std::uint64_t alignment) -> void* {
    TestHost& host = *cast(context);
    if (host.allocations_left == 0) return nullptr;
    if (host.allocations_left > 0) --host.allocations_left;
    if (alignment < 64) host.misaligned = true;
    if (size > (std::uint64_t{1} << 40)) return nullptr;
    void* memory = platform::allocate_aligned(alignment, (size + alignment - 1) / alignment * alignment);
    std::memset(memory, 0xCD, size);
    ++host.allocations, ++host.live_blocks, host.live_bytes += static_cast<std::int64_t>(size);
    return memory;
  };
  table_.release = [](tenon_host_context* context, void* memory, std::uint64_t size) {
    --cast(context)->live_blocks, cast(context)->live_bytes -= static_cast<std::int64_t>(size);
    platform::free_aligned(memory);
  };
  table_.parallel_for = [](tenon_host_context* context, const tenon_run*, std::int64_t count, std::int64_t grain,
                           void (*body)(void*, std::int64_t, std::int64_t), void* argument) {
    const std::int64_t ranges = std::max<std::int64_t>(std::min<std::int64_t>(cast(context)->threads_, count / grain), 1);
    std::vector<std::thread> workers;
    for (std::int64_t r = 1; r < ranges; ++r) {
      workers.emplace_back([=] { body(argument, count * r / ranges, count * (r + 1) / ranges); });
    }
    body(argument, 0, count / ranges);
    for (std::thread& worker : workers) worker.join();
  };
  table_.thread_count = [](tenon_host_context* context, const tenon_run*) { return cast(context)->threads_; };
  table_.trace_begin = [](tenon_host_context*, const char*, std::uint64_t) {};
  table_.trace_end = [](tenon_host_context*) {};
  table_.option = [](tenon_host_context*, const char*) -> const char* { return nullptr; };
  table_.cache_directory = [](tenon_host_context*) -> const char* { return nullptr; };
  table_.cancel_requested = [](tenon_host_context* context, const tenon_run*) -> std::uint32_t {
    TestHost& host = *cast(context);
    return ++host.questions >= host.cancel_from ? 1 : 0;
  };
  table_.autotune_get = [](tenon_host_context*, const char*, void*, std::uint64_t) -> std::uint64_t { return 0; };
  table_.autotune_put = [](tenon_host_context*, const char*, const void*, std::uint64_t) {};
  table_.extension = [](tenon_host_context*, const char*, std::uint32_t) -> const void* { return nullptr; };
}

Session::Session(std::uint32_t threads, tenon_backend_query_fn query) : host(threads) {
  const tenon_host_info asking = host_info();
  info.struct_size = sizeof info;
  REQUIRE(query(&asking, &info) == TENON_OK);
  ErrorText error;
  REQUIRE(info.create(host.table(), &backend, &table, error) == TENON_OK);
  REQUIRE_MESSAGE(table->device_open(backend, 0, &device, error) == TENON_OK, error.text());
  REQUIRE(table->stream_create(device, nullptr, &stream, error) == TENON_OK);
  probe.packs = probe.kernels = probe.fail_div = 0;
  probe.fail_pack = probe.bad_scratch = probe.no_traits_host = false;
  probe.scratch_at = 0;
  probe.unpacked_scratch = 0;
}

Session::~Session() {
  table->stream_destroy(stream);
  table->device_close(device);
  table->shutdown(backend);
  table->destroy(backend);
  CHECK(host.live_blocks == 0);
  CHECK(host.live_bytes == 0);
  CHECK_FALSE(host.misaligned);
  CHECK_FALSE(probe.no_traits_host);
}

}  // namespace tenon::sdk_test
