// SPDX-License-Identifier: Apache-2.0
#include "exec/local_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <thread>

#include <tenon/error.h>

#include "core/element.h"

namespace tenon::exec {
namespace {

/// Elements that stay in the first-level cache between the reading of all ranks and the writing for all of them.
constexpr std::int64_t block = 1024;
/// Between ranks a step apart there are no more than some tens of microseconds, unless one computes more or has lost its processor.
constexpr Clock::duration spin_limit = std::chrono::microseconds(100);

/// Elements [begin, end) of every buffer become the sum over the buffers, in their order.
template <class T>
void sum_elements(const std::vector<void*>& buffers, std::int64_t begin, std::int64_t end) {
  std::array<T, block> sum;
  for (std::int64_t at = begin; at < end; at += block) {
    const std::int64_t count = std::min(block, end - at);
    std::copy_n(static_cast<const T*>(buffers[0]) + at, count, sum.data());
    for (std::size_t b = 1; b < buffers.size(); ++b) {
      const T* const x = static_cast<const T*>(buffers[b]) + at;
      for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += x[i];
    }
    for (void* const buffer : buffers) std::copy_n(sum.data(), count, static_cast<T*>(buffer) + at);
  }
}

/// The same for 16-bit elements, whose sums are rounded once.
void sum_half_elements(const std::vector<void*>& buffers, DType dtype, std::int64_t begin, std::int64_t end) {
  std::array<float, block> sum, wide;
  const auto of = [](void* buffer, std::int64_t at) { return static_cast<std::uint16_t*>(buffer) + at; };
  for (std::int64_t at = begin; at < end; at += block) {
    const std::int64_t count = std::min(block, end - at);
    convert_elements(sum.data(), DType::f32, of(buffers[0], at), dtype, count, "all_reduce");
    for (std::size_t b = 1; b < buffers.size(); ++b) {
      convert_elements(wide.data(), DType::f32, of(buffers[b], at), dtype, count, "all_reduce");
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) sum[i] += wide[i];
    }
    for (void* const buffer : buffers) convert_elements(of(buffer, at), dtype, sum.data(), DType::f32, count, "all_reduce");
  }
}

void sum_over(const std::vector<void*>& buffers, DType dtype, std::int64_t begin, std::int64_t end) {
  switch (dtype) {
    case DType::f32:
      return sum_elements<float>(buffers, begin, end);
    case DType::f64:
      return sum_elements<double>(buffers, begin, end);
    case DType::i32:  // two's complement: sums wrap around
      return sum_elements<std::uint32_t>(buffers, begin, end);
    case DType::i64:
      return sum_elements<std::uint64_t>(buffers, begin, end);
    default:
      return sum_half_elements(buffers, dtype, begin, end);
  }
}

void copy_to(void* to, const void* from, std::int64_t count, DType dtype) {
  if (to != from && count > 0) std::memcpy(to, from, static_cast<std::size_t>(count * size_of(dtype)));
}

bool is_summed(DType dtype) {
  return is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64;
}

}  // namespace

LocalGroup::LocalGroup(int size, const LinkOptions& link, std::shared_ptr<ProcessGroup> processes)
    : size_(size), link_(link), processes_(std::move(processes)) {
  if (size < 1) throw Error(fmt::format("a group of ranks: expected at least 1, got {}", size));
}

LocalGroup::Operation& LocalGroup::find(std::uint64_t index) {
  while (operations_.size() <= index - first_) operations_.emplace_back();
  return operations_[index - first_];
}

void LocalGroup::announce() {
  changes_.fetch_add(1, std::memory_order_release);
  platform::wake_all(changes_);
}

void LocalGroup::fail_aborted() const {
  expect_no_reduction();
  throw Error(Status::cancelled, fmt::format("collective: rank {} ended the group: {}", first_rank() + aborted_by(), reason_));
}

template <class Done>
void LocalGroup::wait_for(const Done& done) {
  wait_until(changes_, spin_limit, [&] { return done() || aborted_by() >= 0; });
  if (aborted_by() >= 0 && !done()) fail_aborted();
}

Clock::duration LocalGroup::link_time(const Operation& operation) const {
  const auto n = static_cast<double>(link_.ranks > 0 ? link_.ranks : size_);
  const auto transfer = static_cast<double>(operation.count * size_of(operation.dtype)) / link_.bandwidth_bytes_per_s;
  const double seconds = n <= 1       ? 0
                         : link_.tree ? 2 * std::ceil(std::log2(n)) * link_.latency_s + 2 * transfer
                                      : 2 * (n - 1) * (link_.latency_s + transfer / n);
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(operation.root ? seconds / 2 : seconds));
}

std::size_t LocalGroup::root_here(const Operation& operation) const {
  const int here = operation.root.value_or(0) - first_rank();
  return here >= 0 && here < size_ ? static_cast<std::size_t>(here) : 0;
}

void LocalGroup::begin(int rank, std::uint64_t index, void* data, std::int64_t count, DType dtype, std::optional<int> root) {
  if (root && (*root < 0 || *root >= size()))
    throw Error(fmt::format("broadcast: expected a root from 0 to {}, got {}", size() - 1, *root));
  if (!root && !is_summed(dtype)) throw Error(fmt::format("all_reduce: expected f16, bf16, f32, f64, i32 or i64, got {}", name_of(dtype)));
  if (aborted_by() >= 0) fail_aborted();
  std::string mismatch;
  Operation* complete = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Operation& operation = find(index);
    if (operation.first < 0) {
      operation.first = rank;
      operation.data.resize(static_cast<std::size_t>(size_));
      operation.count = count;
      operation.dtype = dtype;
      operation.root = root;
    } else if (operation.count != count || operation.dtype != dtype || operation.root != root) {
      const auto text = [&](int r, std::int64_t elements, DType of, std::optional<int> from) {
        return fmt::format("rank {} has {} elements of {} {}", first_rank() + r, elements, name_of(of),
                           from ? fmt::format("from rank {}", *from) : "to sum");
      };
      mismatch = fmt::format("collective: {}, {}; expected the same of all ranks", text(rank, count, dtype, root),
                             text(operation.first, operation.count, operation.dtype, operation.root));
    }
    if (mismatch.empty()) {
      operation.data[static_cast<std::size_t>(rank)] = data;
      if (processes_ != nullptr && operation.arrived.load(std::memory_order_acquire) + 1 == static_cast<std::uint32_t>(size_)) {
        complete = &operation;  // it has arrived when the sum over the processes has begun
      } else if (operation.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
        operation.ready = Clock::now();
        if (link_.bandwidth_bytes_per_s > 0) {
          operation.ready = std::max(operation.ready, link_free_);
          operation.end = link_free_ = operation.ready + link_time(operation);
        }
      }
    }
  }
  if (!mismatch.empty()) {
    abort(rank, mismatch);
    throw Error(mismatch);
  }
  if (complete != nullptr) begin_among_processes(*complete);
  announce();
}

void LocalGroup::begin_among_processes(Operation& operation) {
  reducing_.fetch_add(1);
  const bool goes_on = aborted_by() < 0;
  if (goes_on && !operation.root) sum_over(operation.data, operation.dtype, 0, operation.count);
  reducing_.fetch_sub(1);
  if (!goes_on) fail_aborted();
  operation.shared = operation.data[root_here(operation)];
  {
    const std::lock_guard lock(processes_mutex_);
    const auto size_bytes = static_cast<std::uint64_t>(operation.count * size_of(operation.dtype));
    operation.among_processes = operation.root ? processes_->begin_broadcast(operation.shared, size_bytes, *operation.root / size_)
                                               : processes_->begin_sum(operation.shared, operation.count, operation.dtype);
  }
  const std::lock_guard lock(mutex_);
  operation.ready = Clock::now();
  operation.arrived.fetch_add(1, std::memory_order_acq_rel);
}

void LocalGroup::complete_among_processes(int rank, Operation& operation) {
  {
    const std::lock_guard lock(processes_mutex_);
    if (!operation.over_processes) processes_->wait(operation.among_processes);
    operation.over_processes = true;
  }
  reducing_.fetch_add(1);
  const bool goes_on = aborted_by() < 0;
  if (goes_on) copy_to(operation.data[static_cast<std::size_t>(rank)], operation.shared, operation.count, operation.dtype);
  reducing_.fetch_sub(1);
  if (!goes_on) fail_aborted();
}

void LocalGroup::complete(int rank, std::uint64_t index, CommunicationCounts& out_counts) {
  const auto all = static_cast<std::uint32_t>(size_);
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = &find(index);
  }
  const Clock::time_point entered = Clock::now();
  wait_for([&] { return operation->arrived.load(std::memory_order_acquire) == all; });
  const bool has_link = link_.bandwidth_bytes_per_s > 0;
  Clock::time_point ready;
  {
    const std::lock_guard lock(mutex_);  // the last rank writes `ready` after it has arrived
    ready = operation->ready;
  }
  if (has_link) std::this_thread::sleep_until(operation->end);
  const Clock::time_point began = Clock::now();
  constexpr std::int64_t line = 64;  // parts of whole cache lines
  const auto part = [&](std::int64_t r) { return r == size_ ? operation->count : operation->count / size_ * r / line * line; };
  if (processes_ != nullptr) {
    complete_among_processes(rank, *operation);
  } else {
    reducing_.fetch_add(1);
    const bool goes_on = aborted_by() < 0;
    if (goes_on && operation->root)
      copy_to(operation->data[static_cast<std::size_t>(rank)], operation->data[root_here(*operation)], operation->count, operation->dtype);
    else if (goes_on)
      sum_over(operation->data, operation->dtype, part(rank), part(rank + 1));
    reducing_.fetch_sub(1);
    if (!goes_on) fail_aborted();
  }
  operation->reduced.fetch_add(1, std::memory_order_acq_rel);
  announce();
  wait_for([&] { return operation->reduced.load(std::memory_order_acquire) == all; });
  const Clock::time_point end = Clock::now();
  const auto ns = [](Clock::duration time) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::nanoseconds(time).count()));
  };
  ++out_counts.collectives;
  out_counts.size_bytes += static_cast<std::uint64_t>(operation->count * size_of(operation->dtype));
  out_counts.duration_ns += ns(has_link ? operation->end - ready : end - began);
  out_counts.waited_ns += ns(has_link ? operation->end - std::max(entered, ready) : end - began);
  const std::lock_guard lock(mutex_);
  ++operation->left;
  while (!operations_.empty() && operations_.front().left == size_) {
    operations_.pop_front();
    ++first_;
  }
}

void LocalGroup::abort(int rank, const std::string& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_by() >= 0) return;
    try {
      reason_ = reason;
    } catch (...) {
      reason_.clear();  // without memory for it
    }
    aborted_by_.store(rank);
    for (const auto& weak : device_groups_) {
      if (const std::shared_ptr<DeviceGroup> group = weak.lock()) group->abort();
    }
  }
  announce();
  expect_no_reduction();
}

void LocalGroup::expect_no_reduction() const {
  while (reducing_.load() != 0) relax();
}

void LocalGroup::keep(const std::shared_ptr<DeviceGroup>& group) {
  const std::lock_guard lock(mutex_);
  device_groups_.push_back(group);
  if (aborted_by() >= 0) group->abort();
}

void LocalGroup::expect_alive() const {
  if (aborted_by() >= 0) fail_aborted();
}

void LocalGroup::restart() {
  const std::lock_guard lock(mutex_);
  device_groups_.clear();
  operations_.clear();
  first_ = 0;
  reason_.clear();
  aborted_by_.store(-1, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void LocalCommunicator::follow_restart() {
  if (generation_ == group_->generation()) return;
  generation_ = group_->generation();
  begun_ = completed_ = 0;
  made_ = nullptr;  // it was aborted
}

void LocalCommunicator::sum(std::span<std::int64_t> numbers) {
  follow_restart();
  if (completed_ != begun_) throw Error("sum: expected no collective in progress");
  CommunicationCounts ignored;
  group_->begin(rank_, begun_, numbers.data(), static_cast<std::int64_t>(numbers.size()), DType::i64);
  group_->complete(rank_, begun_++, ignored);
  completed_ = begun_;
}

std::uint64_t LocalCommunicator::begin_all_reduce(void* data, std::int64_t count, DType dtype) {
  follow_restart();
  group_->begin(rank_, begun_, data, count, dtype);
  return begun_++;
}

std::uint64_t LocalCommunicator::begin_broadcast(void* data, std::int64_t count, DType dtype, int root) {
  follow_restart();
  group_->begin(rank_, begun_, data, count, dtype, root);
  return begun_++;
}

void LocalCommunicator::wait(std::uint64_t collective) {
  if (collective >= begun_) throw Error(fmt::format("wait: collective {} has not begun; {} have", collective, begun_));
  for (; completed_ <= collective; ++completed_) group_->complete(rank_, completed_, counts_);
}

std::uint64_t LocalCommunicator::bucket_size_bytes() const {
  return group_->has_processes() || group_->link().bandwidth_bytes_per_s > 0 ? group_->link().bucket_size_bytes : 0;
}

}  // namespace tenon::exec

namespace tenon {

std::vector<std::shared_ptr<Communicator>> local_communicators(int size, const LinkOptions& link) {
  const auto group = std::make_shared<exec::LocalGroup>(size, link);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_shared<exec::LocalCommunicator>(group, rank));
  return ranks;
}

}  // namespace tenon
