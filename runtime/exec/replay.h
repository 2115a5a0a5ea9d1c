// SPDX-License-Identifier: Apache-2.0
// exec/replay.h - records the repeated work of a program once and replays it as one launch, or as one launch for each piece between
// collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/call.h"
#include "exec/device_state.h"

namespace tenon::exec {

/// The recordings of one program, one per recurring set of addresses: a caller that alternates between two buffers has two. Only addresses
/// are kept; a recording is replayed only in a run that has just bound the same ones.
/// Threads  one at a time, as runs of a program are.
class Replay {
 public:
  enum class Action { execute, record, replay };

  /// `device` must have a backend that offers the capture block.
  explicit Replay(std::shared_ptr<DeviceState> device) : device_(std::move(device)) {}
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Decides how to run with these addresses, measured or not. Errors  those of work before it, if a recording in flight is dropped.
  Action next(std::span<const std::uint64_t> addresses, std::uint64_t parameters_epoch, bool measured);
  /// Notes that the run was executed, so that plans have packed the parameters of this epoch.
  void executed(std::uint64_t parameters_epoch);
  /// Calls `submit` for each of the `pieces` of the run, at least one, which submits its work to the stream it gets; records them for the
  /// addresses of next() without executing them. False: the backend or `submit` failed, and the run must be executed.
  bool record(std::uint64_t parameters_epoch, std::size_t pieces, const std::function<void(std::size_t piece, tenon_stream*)>& submit);
  /// Submits a piece of the recording for the addresses of next() to the device's stream; a run submits them in order. `execution_id`: of a
  /// measured run, else 0. After a failure, of a piece or of what lies between two, the device's stream is to be waited for before the next
  /// run and before the end of this object: pieces that were submitted may run until then.
  tenon_status replay(std::size_t piece, std::uint64_t execution_id, tenon_error* error);

  /// Notes that the device has been waited for. Until then recordings are not destroyed without a wait: their pieces may still run.
  void ended() { in_flight_ = false; }

  std::uint64_t records() const { return records_; }
  std::uint64_t replays() const { return replays_; }
  /// Why recording has stopped; empty while it is active.
  const std::string& stopped() const { return stopped_; }

 private:
  struct Entry {
    std::vector<std::uint64_t> addresses;
    std::uint64_t epoch = 0;  ///< parameter epoch of the recording
    bool measured = false;    ///< the recording, or the one to be made, measures its kernels
    bool failed = false;      ///< a piece of the recording could not be submitted
    std::size_t executions = 0;
    std::uint64_t replays = 0;
    std::vector<tenon_capture*> captures;  ///< of the pieces; empty: there is no recording
  };
  /// Plans that pack parameters must be executed, not replayed, after these have changed. The plugin ABI does not tell which plans do, so
  /// recordings are attempted under an epoch that was never executed: packing plans reject it, all others accept it.
  enum class Packs { unknown, no, yes };

  Entry& entry_of(std::span<const std::uint64_t> addresses);
  void destroy(Entry& entry);
  void drop(Entry& entry);
  void stop(std::string reason);

  const std::shared_ptr<DeviceState> device_;
  tenon_stream* stream_ = nullptr;  ///< used for recording, since the device's own stream may be busy with other programs
  std::vector<Entry> entries_;      ///< most recently used first
  Packs packs_ = Packs::unknown;
  std::uint64_t executed_epoch_ = 0;
  std::uint64_t records_ = 0, replays_ = 0;
  bool in_flight_ = false;  ///< something was replayed since ended()
  int wasted_ = 0;          ///< consecutive recordings that were dropped before a second use
  std::string stopped_;
};

}  // namespace tenon::exec
