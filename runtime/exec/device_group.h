// SPDX-License-Identifier: Apache-2.0
// exec/device_group.h - sums and broadcasts over ranks by the collectives of the devices' backend, which leave the host out.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/communicator.h>

#include "exec/call.h"
#include "exec/device_state.h"

namespace tenon::exec {

/// The device of one rank in a group of its backend. Collectives run on a stream of their own, between the work that is before them on the
/// device's stream and the work that needs them: nobody on the host waits. Threads  one at a time; abort() any.
class DeviceGroup {
 public:
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  /// Begins collectives, together and in place, when the device has done what was submitted to it.
  void begin(std::span<const tenon_collective> collectives);
  /// What is submitted to the device from now on comes after the next begin() that has not been finished.
  void finish();
  /// Returns when the device's stream has done what was submitted to it, and begins to count anew. The communicator counts the collectives.
  /// Errors  the group has failed or was aborted.
  void wait(class GroupCommunicator& communicator);
  /// Ends what waits for other ranks.
  void abort() noexcept;
  const std::shared_ptr<DeviceState>& device() const { return device_; }

 private:
  friend class GroupCommunicator;
  /// Events of one begin() of a run, and of the wait for it on the device's stream; used again in the next run.
  struct Submission {
    tenon_event *begin = nullptr, *end = nullptr;
    tenon_event *wait_begin = nullptr, *wait_end = nullptr;
    std::uint64_t size_bytes = 0;
  };
  DeviceGroup(std::shared_ptr<DeviceState> device, tenon_group* group) : device_(std::move(device)), group_(group) {}
  void call(const char* what, tenon_status status) const;
  tenon_event* make_event();
  void record(tenon_event* event, tenon_stream* on);

  const std::shared_ptr<DeviceState> device_;
  tenon_group* const group_;
  tenon_stream* stream_ = nullptr;
  tenon_event* ready_ = nullptr;  ///< the last position of the device's stream that was waited for
  std::vector<Submission> submissions_;
  std::size_t begun_ = 0, finished_ = 0;  ///< in this run
  mutable ErrorText error_;
};

/// A communicator whose programs use the collectives of their devices, where all ranks can.
class GroupCommunicator : public Communicator {
 public:
  /// The sums of these numbers over all ranks, which are not counted.
  virtual void sum(std::span<std::int64_t> numbers) = 0;
  /// The group in which this rank's program runs its sums of these dtypes on this device (null: on none, or on several); null: not all
  /// ranks can, and sums go through the memory of the host. Every rank calls it for each of its programs, in the same order.
  std::shared_ptr<DeviceGroup> device_group(const std::shared_ptr<DeviceState>& device, std::uint64_t dtypes);
  /// Throws why the group has ended, if it has.
  virtual void expect_alive() const {}
  /// Whether devices may sum by themselves.
  virtual bool allows_devices() const { return true; }
  /// Another number than before if the group has ended and begun anew: groups of devices have ended with it.
  virtual std::uint64_t generation() const { return 0; }
  CommunicationCounts counts() const override { return counts_; }

 protected:
  /// Called once for each group that was made, so that abort() can reach it.
  virtual void keep([[maybe_unused]] const std::shared_ptr<DeviceGroup>& group) {}
  friend class DeviceGroup;
  CommunicationCounts counts_;
  std::shared_ptr<DeviceGroup> made_;  ///< by the first program that could

 private:
  std::shared_ptr<DeviceGroup> join(const std::shared_ptr<DeviceState>& device);
};

}  // namespace tenon::exec
