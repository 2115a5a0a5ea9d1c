// SPDX-License-Identifier: Apache-2.0
// tenon/communicator.h - collectives over the ranks of a group: devices of this process that compute parts of one batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/dtype.h>
#include <tenon/graph.h>

namespace tenon {

/// What a communicator has done so far.
struct CommunicationCounts {
  std::uint64_t collectives = 0;
  std::uint64_t size_bytes = 0;  ///< of the buffers of this rank
  /// Of the collectives themselves, added up: with a link (LinkOptions), the time that they took on it;
  /// without one, the work of those who wait for a sum and compute it meanwhile. Collectives of a backend:
  /// from the moment when this rank's device came to them.
  std::uint64_t duration_ns = 0;
  /// Time that callers of wait(), or the device, were held up. Among processes and by collectives of a
  /// backend, by ranks that were late too.
  std::uint64_t waited_ns = 0;
};

/// One rank's end of a group. All ranks begin the same collectives in the same order; several may be
/// under way.
/// Threads  one thread at a time per communicator, but abort() from any thread. The ranks of a
///          process have communicators, and threads, of their own.
class TENON_API Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// The index of this rank, from 0.
  virtual int rank() const = 0;
  /// The number of ranks, at least 1.
  virtual int size() const = 0;
  /// Begins to replace the elements by their sums over all ranks, and returns. `data`: dense, aligned
  /// to its elements, in the memory of the process; not touched by others before wait(). The same bits
  /// on every rank, and again in each run with the same number of ranks. Returns the argument of
  /// wait(). Errors  a dtype that is not f16, bf16, f32, f64, i32 or i64; another count or dtype than
  /// another rank's, which ends the group; a group that has ended.
  virtual std::uint64_t begin_all_reduce(void* data, std::int64_t count, DType dtype) = 0;
  /// Begins to replace the elements by those of the rank `root`, and returns. `data` and errors as in
  /// begin_all_reduce, but for the dtype, which may be any; a root that is no rank, or another one
  /// than another rank's, is an error, too.
  virtual std::uint64_t begin_broadcast(void* data, std::int64_t count, DType dtype, int root) = 0;
  /// Returns when that collective and those before it have finished. Errors  a group that has ended.
  virtual void wait(std::uint64_t collective) = 0;
  /// Ends the group: on every rank collectives fail with the reason given first, those that have
  /// begun, too.
  virtual void abort(const std::string& reason) noexcept = 0;
  /// How many bytes to reduce together: less gives the first result earlier, more costs fewer
  /// collectives. 0: all.
  virtual std::uint64_t bucket_size_bytes() const = 0;
  /// Since the communicator was made.
  virtual CommunicationCounts counts() const = 0;
};

/// A link between the ranks of a process that is slower than their memory: sums take as long as over
/// such links, and broadcasts half as long, while the processor is free. For tests and predictions.
struct LinkOptions {
  double bandwidth_bytes_per_s = 0;  ///< 0: no link
  double latency_s = 0;              ///< of each step
  std::uint64_t bucket_size_bytes = 25u << 20;
  /// Sums take as long as among so many ranks, each of which is like those that there are; 0: these.
  std::int64_t ranks = 0;
  /// For n ranks. False: a ring, 2 (n - 1) steps with 1/n of the bytes each. True: a tree, 2 log2(n)
  /// latencies and twice the bytes, in pieces that follow each other.
  bool tree = false;
};

/// The ranks 0 to size - 1 of a group within this process. Sums are computed in the order of the ranks
/// by the threads that wait for them, each a part. Errors  a size below 1.
TENON_API std::vector<std::shared_ptr<Communicator>> local_communicators(
    int size, const LinkOptions& link = {});

namespace ops {

/// The sums of these values over the ranks of the program's communicator
/// (ProgramOptions::communicator), in one collective; values have one dtype: f16, bf16, f32, f64, i32
/// or i64. The gradient of a sum is the sum of its gradients. Every rank computes the same graph, with
/// shapes of its own elsewhere. Computed by the runtime between plans, while plans that do not need the
/// result run.
TENON_API std::vector<Value> all_reduce(const std::vector<Value>& values);

/// The values of the rank `root`, on every rank, in one collective; values have one dtype. Every rank
/// has its collectives in the same order, and gives operands of these shapes: those of the others are
/// not read. No gradient flows through. A broadcast is run though its results are not read: other
/// ranks may need its operands. Errors  a root below 0; when a program is made of it, one that is no
/// rank.
TENON_API std::vector<Value> broadcast(const std::vector<Value>& values, int root);

}  // namespace ops

}  // namespace tenon
