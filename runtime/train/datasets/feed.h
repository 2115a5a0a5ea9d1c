// SPDX-License-Identifier: Apache-2.0
// train/datasets/feed.h - the batches of an epoch, prefetched into the memory of the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tenon/context.h>
#include <tenon/data.h>

namespace tenon::train {

/// Device memory of two batches. It outlives the feeds that use it in turn: a captured program is replayed at the addresses that it was
/// recorded with.
struct FeedBuffers {
  std::array<std::vector<Tensor>, 2> inputs, targets;
  std::array<Tensor, 2> sample_weights;
};

struct FeedOptions {
  BatchOptions batches;
  std::optional<Device> device;  ///< the device that reads batches; empty: several do, and batches stay in host memory
  bool pinned = true;            ///< use pinned host memory if the device has memory of its own
};

/// The batches of an epoch, of a data set or of a source of batches.
/// Threads  only the thread that runs the steps.
class EpochBatches {
 public:
  virtual ~EpochBatches() = default;
  /// The number of batches in an epoch; 0: not known.
  virtual std::int64_t count() const = 0;
  /// See Batches::start.
  virtual void start(std::uint64_t epoch, std::int64_t first_batch = 0) = 0;
  /// See Batches::next.
  virtual const Batch* next() = 0;
  /// Whether next() may be called while a step that reads the last batch is on the device: its memory is used again in the order of the
  /// device. Otherwise that is up to whoever makes the batches, who may write to it at once.
  virtual bool keeps_last_batch() const { return false; }
};

/// Batches, read ahead by their workers and, for a device with separate memory, copied ahead: while a step computes on one of two device
/// buffers, a thread copies the next batch to the other on its own stream. Without workers nothing is read or copied ahead; on devices that
/// address host memory nothing is copied, and batches are host tensors.
///
/// Order    Events order the device: a step waits for the copy of its batch, a copy for the last step that read its buffer. Host memory is
///          reused after the copy from it has finished.
/// Memory   start() and next() allocate nothing for batches of the same size.
class Feed final : public EpochBatches {
 public:
  /// Resizes `buffers`, which must outlive the feed. Errors  those of Batches; out of device memory.
  Feed(std::shared_ptr<const Dataset> data, const FeedOptions& options, FeedBuffers& buffers);
  ~Feed() override;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  std::int64_t count() const override { return batches_.count(); }
  void start(std::uint64_t epoch, std::int64_t first_batch = 0) override;
  /// Errors  those of Batches and of the copy.
  const Batch* next() override;
  bool keeps_last_batch() const override { return copier_ != nullptr; }

 private:
  class Copier;
  Batches batches_;
  std::unique_ptr<Copier> copier_;  ///< null: batches are not copied
};

}  // namespace tenon::train
