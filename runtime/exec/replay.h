// exec/replay.h - what a program gives to its device again and again is recorded once, and then replayed as one launch.
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

/// The recordings of one program, one for each set of addresses that it keeps coming back to: callers with two buffers that take turns
/// have two. Addresses alone are kept; a recording is replayed only in a run that has just bound the same ones.
/// Threads  one at a time, as runs of a program are.
class Replay {
 public:
  enum class Turn { execute, record, replay };

  /// A device whose backend offers the capture block.
  explicit Replay(std::shared_ptr<DeviceState> device) : device_(std::move(device)) {}
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// What a run on these addresses is to do.
  Turn next(std::span<const std::uint64_t> addresses, std::uint64_t parameters_epoch);
  /// The run has been executed: plans have packed the parameters of this epoch.
  void executed(std::uint64_t parameters_epoch);
  /// Calls `give`, which gives the run's work to the stream it gets, and notes that down for the addresses of next(). Nothing of it is
  /// executed. False: the backend or `give` refused, and the run has to be executed.
  bool record(std::uint64_t parameters_epoch, const std::function<void(tenon_stream*)>& give);
  /// Gives what was recorded for the addresses of next() to the device's stream.
  tenon_status replay(tenon_error* error);

  std::uint64_t records() const { return records_; }
  std::uint64_t replays() const { return replays_; }
  /// Why nothing is recorded any more; empty as long as it is tried.
  const std::string& stopped() const { return stopped_; }

 private:
  struct Entry {
    std::vector<std::uint64_t> addresses;
    std::uint64_t epoch = 0;  ///< of the recording
    std::size_t executions = 0;
    std::uint64_t replays = 0;
    tenon_capture* capture = nullptr;
  };
  /// Plans that pack parameters must be executed, not replayed, once these have changed. The socket has no word that tells which do: a
  /// recording under an epoch that was never executed is refused by them and taken by all others.
  enum class Packs { unknown, no, yes };

  Entry& entry_of(std::span<const std::uint64_t> addresses);
  void drop(Entry& entry);
  void stop(std::string reason);

  const std::shared_ptr<DeviceState> device_;
  tenon_stream* stream_ = nullptr;  ///< recorded on: the device's own stream may be at work for other programs meanwhile
  std::vector<Entry> entries_;      ///< last used first
  Packs packs_ = Packs::unknown;
  std::uint64_t executed_epoch_ = 0;
  std::uint64_t records_ = 0, replays_ = 0;
  int wasted_ = 0;  ///< recordings in a row that were dropped before a second run had them
  std::string stopped_;
};

}  // namespace tenon::exec
