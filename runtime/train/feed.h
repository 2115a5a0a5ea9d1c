// train/feed.h - the batches of an epoch, in the memory of the device that computes on them before it asks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include <tenon/context.h>
#include <tenon/data.h>

namespace tenon::train {

/// Device memory of two batches. It outlives the feeds that use it one after another: a program is replayed at the addresses that it was
/// recorded with.
struct FeedBuffers {
  std::array<Tensor, 2> x, y;
};

/// What a feed may be told.
struct FeedOptions {
  BatchOptions batches;
  std::optional<Device> device;  ///< that reads x and y; nothing: several do, and batches stay in the host's memory
  bool pinned = true;            ///< a device with memory of its own copies from host memory that it reaches without staging
};

/// Batches, read ahead by their workers and, for a device that does not address the host's memory, copied ahead: while a step computes on
/// one of two buffers there, a thread gives the copy of the next batch to the other to a stream of its own, as soon as it is read. Without
/// workers nothing is done ahead, and on other devices nothing is copied: batches are then tensors of the host.
///
/// Order    The device keeps it by events: a step begins when its batch is there, a copy when the step that read its buffer before is done.
///          Host memory is read into again when the copy from it is done.
/// Memory   start() and next() allocate nothing for batches of the same size.
/// Threads  one thread at a time, the one that runs the steps.
class Feed {
 public:
  /// `buffers` are made to fit, and must stay until the end. Errors  those of Batches; no device memory.
  Feed(std::shared_ptr<const Dataset> data, const FeedOptions& options, FeedBuffers& buffers);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Batches in an epoch.
  std::int64_t count() const { return batches_.count(); }
  /// As Batches::start.
  void start(std::uint64_t epoch, std::int64_t first_batch = 0);
  /// As Batches::next. Errors  those of Batches, and of the copy.
  const Batch* next();

 private:
  class Copier;
  Batches batches_;
  std::unique_ptr<Copier> copier_;  ///< null: batches stay where they are read
};

}  // namespace tenon::train
