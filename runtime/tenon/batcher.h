// SPDX-License-Identifier: Apache-2.0
// tenon/batcher.h - dynamic batching: requests of many threads run together, as batches of one
// model.
//
//   Batcher batcher(onnx::Model::load("net.onnx"), {.max_batch = 16, .max_delay_us = 500});
//   std::future<NamedTensors> result = batcher.submit({{"x", image}});  // from any thread
//   const Tensor scores = result.get().at("scores");
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/model.h>
#include <tenon/onnx.h>
#include <tenon/run_options.h>
#include <tenon/safetensors.h>

namespace tenon {

/// The elements of the rows that are added to a batch to reach one of BatcherOptions::batch_sizes.
/// Their results are dropped.
enum class BatchPadding {
  last_row,  ///< those of the batch's last row, valid wherever the request is
  zeros,
};

/// When a batch runs, and how many requests may wait.
struct BatcherOptions {
  /// the most samples of requests in a batch; at least 1
  std::int64_t max_batch = 8;
  /// A batch with fewer samples runs once its oldest request has waited that long. 0: at once, with
  /// what is in the queue when the model is free. At most 10^9.
  std::int64_t max_delay_us = 1000;
  /// The most requests that wait, without those of the batch that runs; at least 1.
  std::size_t max_queue = 1024;
  /// The sizes with which the model is called, ascending: a batch is padded to the next one, since a
  /// program is compiled for each size. The last is at least max_batch. Empty: 1, 2, 4, ... and
  /// max_batch.
  std::vector<std::int64_t> batch_sizes = {};
  BatchPadding padding = BatchPadding::last_row;
};

/// Options of one request.
struct RequestOptions {
  /// A request whose batch has not started by then is not run; its error has Status::not_ready. A
  /// request with less than 2 * max_delay_us until then does not wait for others to join it.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  /// A stop request before the batch starts: the request is not run; its error has
  /// Status::cancelled. The queue is searched for such requests whenever a batch could start.
  std::stop_token stop = {};
};

/// What a batcher has done. Requests that end are completed, failed, expired or cancelled.
struct BatcherCounts {
  std::uint64_t requests = 0;       ///< accepted
  std::uint64_t completed = 0;      ///< with results
  std::uint64_t failed = 0;         ///< with the error of their run
  std::uint64_t rejected = 0;       ///< by try_submit, since the queue was full; not in `requests`
  std::uint64_t expired = 0;        ///< by their deadline
  std::uint64_t cancelled = 0;      ///< by their stop token, or by the destructor
  std::uint64_t batches = 0;        ///< that were run
  std::uint64_t samples = 0;        ///< of these batches, without padding
  std::uint64_t padding = 0;        ///< rows added to these batches
  std::uint64_t split_batches = 0;  ///< that failed, so that their requests were run one by one
  std::size_t queued = 0;           ///< requests that wait now
  /// Microseconds from the acceptance of a request until its batch started, over the last 4096
  /// requests that started; 0 if there were none.
  double wait_p50_us = 0, wait_p90_us = 0, wait_p99_us = 0, wait_max_us = 0;

  /// Samples per batch; 0 if there were none.
  double mean_batch() const {
    return batches == 0 ? 0 : static_cast<double>(samples) / static_cast<double>(batches);
  }
};

/// Joins requests into batches and runs these with one call of a function, on a thread of its own.
///
/// A request has inputs by name, whose first axis counts its samples. Requests join if their inputs
/// have equal names, dtypes and shapes beyond the first axis; others form batches of their own. A
/// batch is ready if no further request fits, if its oldest request has waited max_delay_us, or if
/// the queue is full; of several the one with the oldest request runs first. Requests that join are
/// in order of arrival.
///
/// Shapes   each output of the function has the size of the batch as its first axis. A request gets
///          its rows, in host memory of their own.
/// Errors   If a batch of several requests fails, they are run one by one, each padded likewise, so
///          that the error reaches only those that cause it; a function with side effects sees them
///          twice. An output without the batch as its first axis is an error of all requests of the
///          batch that names it; a batch of size 1 cannot tell it from one of a single sample.
/// Threads  any, at the same time; calls must have returned before the destructor runs. The function
///          is called only on the batcher's thread, one call at a time.
class TENON_API Batcher {
 public:
  /// The outputs, by name, for inputs whose first axis is the batch. Dense inputs of a batch that is
  /// a single request without padding are those of the request. The outputs are copied before the
  /// next call.
  using Function = std::function<NamedTensors(const NamedTensors& inputs)>;

  /// Errors, here and below  options outside their range, which the text names; no function.
  explicit Batcher(Function function, const BatcherOptions& options = {});
  /// Of an ONNX model, whose outputs have their names in the file. Each run has the options `run`; a
  /// stop request in them cancels all requests from then on.
  /// Errors  an input without a first axis, or whose fixed first dimension is not the only one of
  ///         batch_sizes.
  explicit Batcher(onnx::Model model, const BatcherOptions& options = {},
                   const RunOptions& run = {});
  /// Of a model of layers, with what Model::predict computes.
  explicit Batcher(Model model, const BatcherOptions& options = {}, const RunOptions& run = {});
  /// Refuses the requests that wait, with an error of Status::cancelled, and returns when the batch
  /// that runs has ended. Call close() first to run what waits.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Adds a request; while the queue is full, waits until it is not, or for the request's deadline
  /// or stop token. The future has the outputs of the request, or the Error or other exception that
  /// its run ended with. The tensors are not copied before the batch starts: their elements must not
  /// change until the future is ready.
  /// Errors  no inputs; an input that is undefined, has rank 0, no samples, another number of samples
  ///         than the others, or more than max_batch; a batcher that was closed (Status::cancelled).
  std::future<NamedTensors> submit(NamedTensors inputs, const RequestOptions& options = {});
  /// The same without waiting: nothing if the queue is full.
  std::optional<std::future<NamedTensors>> try_submit(NamedTensors inputs,
                                                      const RequestOptions& options = {});
  /// Submits and waits for the outputs. Errors: those of submit, and that of the request.
  NamedTensors run(NamedTensors inputs, const RequestOptions& options = {}) {
    return submit(std::move(inputs), options).get();
  }
  /// Accepts no further requests, runs those that wait without further delay, and returns when they
  /// are done. Later calls do nothing. Not from the function.
  void close();

  /// What it has done so far. A request is counted before its future is ready.
  BatcherCounts counts() const;
  /// The options, with batch_sizes filled in.
  const BatcherOptions& options() const;

 private:
  struct TENON_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
