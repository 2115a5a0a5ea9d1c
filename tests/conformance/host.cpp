// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "array.h"
#include "exec/backend_options.h"
#include "loader/self_check.h"
#include "platform/memory.h"

namespace tenon::conformance {
namespace {

constexpr std::uint64_t guard_bytes = 64;
constexpr unsigned char guard_byte = 0xA5;
/// More than any case needs. Only the memory cases request more, and expect a refusal.
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 36;

/// The content of memory after allocation and after release; of large blocks, only of their beginning.
constexpr unsigned char stale_byte = 0xCD;
constexpr std::uint64_t max_stale_bytes = 1 << 16;

thread_local bool inside_parallel_for = false;

bool is_guard(const unsigned char* bytes) {
  return std::all_of(bytes, bytes + guard_bytes, [](unsigned char b) { return b == guard_byte; });
}

}  // namespace

Host& Host::of(tenon_host_context* context) {
  return *reinterpret_cast<Host*>(context);
}

Host::Host(const tenon_backend_info& info, std::uint32_t abi_minor, const std::map<std::string, std::string>& options,
           Parallelism parallelism)
    : parallelism_(parallelism), options_(exec::option_values(info, options, fmt::format("--backend-option {}", info.name))) {
  table_.struct_size = sizeof table_;
  table_.abi_minor = abi_minor;
  table_.context = reinterpret_cast<tenon_host_context*>(this);
  table_.log = [](tenon_host_context* context, std::uint32_t, const char*) { ++of(context).log_lines_; };
  table_.allocate = [](tenon_host_context* context, std::uint64_t size, std::uint64_t alignment) {
    return of(context).allocate(size, alignment);
  };
  table_.release = [](tenon_host_context* context, void* memory, std::uint64_t size) { of(context).release(memory, size); };
  table_.parallel_for = [](tenon_host_context* context, const tenon_run* run, std::int64_t count, std::int64_t grain,
                           void (*body)(void*, std::int64_t, std::int64_t), void* argument) {
    if (count <= 0) return;
    Host& host = of(context);
    if (!host.is_run(run)) ++host.loops_outside_runs_;
    if (inside_parallel_for || count <= grain) {
      host.run(body, argument, 0, count);
    } else if (host.parallelism_.shuffled) {
      host.run_shuffled(count, grain, body, argument);
    } else {
      host.run_in_parallel(host.threads_of(run), count, grain, body, argument);
    }
  };
  table_.thread_count = [](tenon_host_context* context, const tenon_run* run) { return of(context).threads_of(run); };
  table_.trace_begin = [](tenon_host_context* context, const char*, std::uint64_t) { ++of(context).open_spans_; };
  table_.trace_end = [](tenon_host_context* context) { --of(context).open_spans_; };
  table_.option = [](tenon_host_context* context, const char* option) -> const char* {
    const auto found = of(context).options_.find(option);
    return found == of(context).options_.end() ? nullptr : found->second.c_str();
  };
  table_.cache_directory = [](tenon_host_context*) -> const char* { return nullptr; };
  table_.cancel_requested = [](tenon_host_context* context, const tenon_run* run) {
    Host& host = of(context);
    return host.is_run(run) && ++host.questions_ >= host.cancel_from_ ? std::uint32_t{1} : std::uint32_t{0};
  };
  table_.autotune_get = [](tenon_host_context* context, const char* key, void* out_value, std::uint64_t capacity) {
    return of(context).read_choice(key, out_value, capacity);
  };
  table_.autotune_put = [](tenon_host_context* context, const char* key, const void* value, std::uint64_t size) {
    of(context).keep_choice(key, value, size);
  };
  table_.extension = [](tenon_host_context*, const char*, std::uint32_t) -> const void* { return nullptr; };
}

Host::~Host() {
  for (const auto& [memory, block] : blocks_) platform::free_aligned(block.base);
}

/// A body that changes the floating-point environment would change the results of whatever this thread does next.
void Host::run(Body body, void* argument, std::int64_t begin, std::int64_t end) {
  const auto before = loader::FloatingPoint::current();
  body(argument, begin, end);
  if (const auto change = loader::FloatingPoint::current().change_since(before)) {
    const std::lock_guard lock(mutex_);
    damage_ = "a body given to parallel_for " + *change;
  }
}

namespace {
/// Marks this thread as one that runs a body.
struct InsideParallelFor {
  InsideParallelFor() { inside_parallel_for = true; }
  ~InsideParallelFor() { inside_parallel_for = false; }
};
}  // namespace

std::uint32_t Host::threads_of(const tenon_run* run) const {
  return run == nullptr || run->threads == 0 ? parallelism_.threads : std::min(run->threads, parallelism_.threads);
}

void Host::run_in_parallel(std::int64_t threads, std::int64_t count, std::int64_t grain, Body body, void* argument) {
  const std::int64_t length = std::max((count + threads - 1) / threads, grain);
  std::vector<std::thread> others;
  for (std::int64_t begin = length; begin < count; begin += length) {
    others.emplace_back([=, this] {
      const InsideParallelFor inside;
      run(body, argument, begin, std::min(begin + length, count));
    });
  }
  {
    const InsideParallelFor inside;
    run(body, argument, 0, std::min(length, count));
  }
  for (std::thread& other : others) other.join();
}

void Host::run_shuffled(std::int64_t count, std::int64_t grain, Body body, void* argument) {
  constexpr std::int64_t max_ranges = 64;
  const std::int64_t length = std::max({(count + max_ranges - 1) / max_ranges, grain, std::int64_t{1}});
  std::vector<std::int64_t> begins;
  for (std::int64_t begin = 0; begin < count; begin += length) begins.push_back(begin);
  Random random(++loops_);
  for (std::size_t i = begins.size(); i > 1; --i)
    std::swap(begins[i - 1], begins[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i)))]);
  const InsideParallelFor inside;
  for (const std::int64_t begin : begins) run(body, argument, begin, std::min(begin + length, count));
}

std::uint64_t Host::read_choice(const char* key, void* out_value, std::uint64_t capacity) const {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end()) return 0;
  const std::uint64_t copied = std::min<std::uint64_t>(capacity, found->second.size());
  if (copied > 0) std::memcpy(out_value, found->second.data(), copied);
  return found->second.size();
}

void Host::keep_choice(const char* key, const void* value, std::uint64_t size) {
  const auto* bytes = static_cast<const unsigned char*>(value);
  const std::lock_guard lock(mutex_);
  choices_[key].assign(bytes, bytes + size);
}

std::map<std::string, std::vector<unsigned char>> Host::choices() const {
  const std::lock_guard lock(mutex_);
  return choices_;
}

void Host::set_choices(std::map<std::string, std::vector<unsigned char>> choices) {
  const std::lock_guard lock(mutex_);
  choices_ = std::move(choices);
}

bool Host::may_allocate() {
  std::int64_t left = allocations_left_.load();
  while (left > 0 && !allocations_left_.compare_exchange_weak(left, left - 1)) continue;
  if (left == 0) ++refusals_;
  return left != 0;
}

void* Host::allocate(std::uint64_t size, std::uint64_t alignment) {
  if (!may_allocate()) return nullptr;
  if (size > max_bytes || alignment == 0 || (alignment & (alignment - 1)) != 0) return nullptr;
  const std::uint64_t lead = std::max(alignment, guard_bytes);
  const std::uint64_t total = (lead + size + guard_bytes + alignment - 1) / alignment * alignment;
  auto* base =
      static_cast<unsigned char*>(platform::allocate_aligned(std::max<std::uint64_t>(alignment, sizeof(void*)), (total + 7) / 8 * 8));
  if (base == nullptr) return nullptr;
  unsigned char* memory = base + lead;
  std::memset(memory - guard_bytes, guard_byte, guard_bytes);
  std::memset(memory + size, guard_byte, guard_bytes);
  std::memset(memory, stale_byte, std::min(size, max_stale_bytes));
  ++allocations_;
  ++live_blocks_;
  const std::lock_guard lock(mutex_);
  blocks_[memory] = {size, alignment, base};
  return memory;
}

void Host::release(void* memory, std::uint64_t size) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) {
    damage_ = "the backend released host memory that it does not own";
    return;
  }
  const Block block = found->second;
  if (size != block.size) damage_ = fmt::format("the backend allocated {} bytes of host memory and released them as {}", block.size, size);
  const auto* bytes = static_cast<unsigned char*>(memory);
  if (!is_guard(bytes - guard_bytes)) damage_ = fmt::format("the backend wrote before its host memory of {} bytes", block.size);
  if (!is_guard(bytes + block.size)) damage_ = fmt::format("the backend wrote past the end of its host memory of {} bytes", block.size);
  std::memset(memory, stale_byte, std::min(block.size, max_stale_bytes));
  platform::free_aligned(block.base);
  blocks_.erase(found);
  --live_blocks_;
}

std::string Host::damage() const {
  const std::lock_guard lock(mutex_);
  return damage_;
}

}  // namespace tenon::conformance
