// SPDX-License-Identifier: Apache-2.0
// serve/batch_queue.h - the requests that wait, and which of them form the next batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <vector>

#include "serve/request.h"

namespace tenon::serve {

/// Requests by the types of their inputs, in order of arrival. It does not look at a clock: callers say what time it is.
/// Threads  one call at a time.
class BatchQueue {
 public:
  BatchQueue(std::int64_t max_batch, Clock::duration max_delay) : max_batch_(max_batch), max_delay_(max_delay) {}

  /// Adds a request, which arrives later than those before it. True if a group is ready earlier by it.
  bool push(Request request);
  std::size_t size() const { return size_; }

  /// Removes the requests that are not to be run: whose deadline is not after `now`, or whose stop token has a stop request.
  struct Dropped {
    std::vector<Request> expired, cancelled;
  };
  Dropped drop(Clock::time_point now);
  /// Removes the next batch: of the groups of requests that can join and are ready, the one with the oldest request. Empty if none is
  /// ready. `flush`: all groups are.
  std::vector<Request> take(Clock::time_point now, bool flush);
  /// Removes all requests.
  std::vector<Request> take_all();
  /// When a group becomes ready without a further request; nothing if the queue is empty.
  std::optional<Clock::time_point> next_ready() const;

 private:
  /// Requests that can join, in order of arrival; never empty.
  struct Group {
    std::deque<Request> requests;
    std::int64_t samples = 0;
    Clock::time_point due = Clock::time_point::max();  ///< the earliest of its requests
  };
  /// When the request does not wait for others any longer.
  Clock::time_point due(const Request& request) const;
  /// Updates samples and due after requests were removed.
  void recount(Group& group) const;
  void erase_empty_groups();

  std::int64_t max_batch_;
  Clock::duration max_delay_;
  std::list<Group> groups_;
  std::size_t size_ = 0;  ///< requests in all groups
};

}  // namespace tenon::serve
