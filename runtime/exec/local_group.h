// SPDX-License-Identifier: Apache-2.0
// exec/local_group.h - sums and broadcasts over ranks that are threads of this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/communicator.h>

#include "exec/device_group.h"
#include "exec/process_group.h"
#include "exec/spin.h"

namespace tenon::exec {

/// The ranks of a group that share memory. Every rank reduces one part of each buffer, for all ranks, when it waits for the result: the
/// work of a sum is divided without threads of its own, and its order is that of the ranks.
/// With processes, each has such a group, of as many ranks: the last rank that begins a sum computes that of its process, and begins the
/// sum over the processes.
///
/// Threads  one per rank; abort() any.
class LocalGroup {
 public:
  /// Errors  a size below 1.
  explicit LocalGroup(int size, const LinkOptions& link = {}, std::shared_ptr<ProcessGroup> processes = nullptr);
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  /// The ranks of this process.
  int device_count() const { return size_; }
  /// Those of all processes, and the first one here.
  int size() const { return processes_ == nullptr ? size_ : size_ * processes_->size(); }
  int first_rank() const { return processes_ == nullptr ? 0 : size_ * processes_->rank(); }
  const LinkOptions& link() const { return link_; }
  bool has_processes() const { return processes_ != nullptr; }
  /// This rank's next collective: a sum, or a broadcast from `root`, a rank of all processes. Errors  as Communicator::begin_all_reduce.
  void begin(int rank, std::uint64_t index, void* data, std::int64_t count, DType dtype, std::optional<int> root = {});
  /// Its end. Adds to `out_counts`. Errors  a group that has ended.
  void complete(int rank, std::uint64_t index, CommunicationCounts& out_counts);
  void abort(int rank, const std::string& reason) noexcept;
  /// Throws why the group has ended, if it has.
  void expect_alive() const;
  /// Aborts this, too, when the group ends.
  void keep(const std::shared_ptr<DeviceGroup>& group);
  /// The rank that ended the group; -1: none.
  int aborted_by() const { return aborted_by_.load(std::memory_order_acquire); }
  /// Forgets what has been begun, so that a group that has ended can be used again: while no rank uses it.
  void restart();
  /// How often it was restarted: ranks count their collectives anew.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  /// One collective.
  struct Operation {
    std::vector<void*> data;  ///< by rank
    std::int64_t count = 0;
    DType dtype = DType::none;
    std::optional<int> root;  ///< of a broadcast: a rank of all processes
    int first = -1;           ///< the rank that began it first
    void* shared = nullptr;   ///< with processes: the memory that takes part for all ranks of this one
    /// When all ranks have begun it; with a link, when it gets and leaves the link.
    Clock::time_point ready, end;
    std::atomic<std::uint32_t> arrived{0}, reduced{0};
    int left = 0;                       ///< ranks that have returned from it
    std::uint64_t among_processes = 0;  ///< the transport's number of it
    bool over_processes = false;        ///< that has ended; guarded by processes_mutex_
  };

  Operation& find(std::uint64_t index);
  /// When all ranks of this process have begun.
  void begin_among_processes(Operation& operation);
  /// Waits for what the processes do, and copies the result to the rank.
  void complete_among_processes(int rank, Operation& operation);
  /// Marks a change that other ranks may wait for.
  void announce();
  template <class Done>
  void wait_for(const Done& done);
  Clock::duration link_time(const Operation& operation) const;
  /// The rank `root` of an operation among those of this process; 0 if it is not one of them.
  std::size_t root_here(const Operation& operation) const;
  [[noreturn]] void fail_aborted() const;
  /// Waits for the sums in progress when a group ends: they use the memory of ranks that leave, which may be freed then.
  void expect_no_reduction() const;

  const int size_;
  const LinkOptions link_;
  const std::shared_ptr<ProcessGroup> processes_;
  std::mutex processes_mutex_;                             ///< one thread at a time uses processes_
  std::mutex mutex_;                                       ///< guards operations_, first_, link_free_, reason_ and device_groups_
  std::deque<Operation> operations_;                       ///< from the oldest that a rank still needs
  std::uint64_t first_ = 0;                                ///< index of operations_.front()
  Clock::time_point link_free_;                            ///< the end of the last transfer
  std::string reason_;                                     ///< why the group ended; written once before aborted_by_
  std::vector<std::weak_ptr<DeviceGroup>> device_groups_;  ///< of the ranks
  std::atomic<int> aborted_by_{-1};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::uint32_t> reducing_{0};  ///< ranks that compute sums
};

/// One rank of a group: `rank` of those of this process.
class LocalCommunicator final : public GroupCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  int rank() const override { return group_->first_rank() + rank_; }
  int size() const override { return group_->size(); }
  std::uint64_t begin_all_reduce(void* data, std::int64_t count, DType dtype) override;
  std::uint64_t begin_broadcast(void* data, std::int64_t count, DType dtype, int root) override;
  void wait(std::uint64_t collective) override;
  void abort(const std::string& reason) noexcept override { group_->abort(rank_, reason); }
  std::uint64_t bucket_size_bytes() const override;
  void sum(std::span<std::int64_t> numbers) override;
  void expect_alive() const override { group_->expect_alive(); }
  bool allows_devices() const override { return group_->link().bandwidth_bytes_per_s == 0; }  // a link holds for all sums
  std::uint64_t generation() const override { return group_->generation(); }

 private:
  void keep(const std::shared_ptr<DeviceGroup>& group) override { group_->keep(group); }
  void follow_restart();

  const std::shared_ptr<LocalGroup> group_;
  const int rank_;
  std::uint64_t generation_ = 0, begun_ = 0, completed_ = 0;
};

}  // namespace tenon::exec
