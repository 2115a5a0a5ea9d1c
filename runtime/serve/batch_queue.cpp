// SPDX-License-Identifier: Apache-2.0
#include "serve/batch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tenon::serve {

bool BatchQueue::push(Request request) {
  const Clock::time_point request_due = due(request);
  const std::optional<Clock::time_point> next = next_ready();
  auto group = std::ranges::find_if(groups_, [&](const Group& g) { return can_join(g.requests.front().inputs, request.inputs); });
  if (group == groups_.end()) group = groups_.emplace(groups_.end());
  group->samples += request.samples;
  group->due = std::min(group->due, request_due);
  group->requests.push_back(std::move(request));
  ++size_;
  return group->samples >= max_batch_ || !next || request_due < *next;
}

BatchQueue::Dropped BatchQueue::drop(Clock::time_point now) {
  Dropped dropped;
  const auto is_cancelled = [](const Request& request) { return request.stop.stop_requested(); };
  const auto is_kept = [&](const Request& request) { return request.deadline > now && !is_cancelled(request); };
  for (Group& group : groups_) {
    if (std::ranges::all_of(group.requests, is_kept)) continue;
    std::deque<Request> kept;
    for (Request& request : group.requests) {
      if (is_kept(request)) {
        kept.push_back(std::move(request));
      } else if (is_cancelled(request)) {
        dropped.cancelled.push_back(std::move(request));
      } else {
        dropped.expired.push_back(std::move(request));
      }
    }
    size_ -= group.requests.size() - kept.size();
    group.requests = std::move(kept);
    recount(group);
  }
  erase_empty_groups();
  return dropped;
}

std::vector<Request> BatchQueue::take(Clock::time_point now, bool flush) {
  auto oldest = groups_.end();
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    if (!flush && group->samples < max_batch_ && group->due > now) continue;
    if (oldest == groups_.end() || group->requests.front().arrival < oldest->requests.front().arrival) oldest = group;
  }
  std::vector<Request> batch;
  if (oldest == groups_.end()) return batch;
  std::int64_t samples = 0;
  while (!oldest->requests.empty() && samples + oldest->requests.front().samples <= max_batch_) {
    samples += oldest->requests.front().samples;
    batch.push_back(std::move(oldest->requests.front()));
    oldest->requests.pop_front();
  }
  size_ -= batch.size();
  recount(*oldest);
  erase_empty_groups();
  return batch;
}

std::vector<Request> BatchQueue::take_all() {
  std::vector<Request> all;
  for (Group& group : groups_) std::ranges::move(group.requests, std::back_inserter(all));
  groups_.clear();
  size_ = 0;
  return all;
}

std::optional<Clock::time_point> BatchQueue::next_ready() const {
  std::optional<Clock::time_point> next;
  for (const Group& group : groups_) next = next ? std::min(*next, group.due) : group.due;
  return next;
}

Clock::time_point BatchQueue::due(const Request& request) const {
  // A request that cannot afford the delay twice would expire while its batch waits or is about to start.
  const bool can_wait = request.deadline - request.arrival >= 2 * max_delay_;
  return can_wait ? request.arrival + max_delay_ : request.arrival;
}

void BatchQueue::recount(Group& group) const {
  group.samples = 0;
  group.due = Clock::time_point::max();
  for (const Request& request : group.requests) {
    group.samples += request.samples;
    group.due = std::min(group.due, due(request));
  }
}

void BatchQueue::erase_empty_groups() {
  std::erase_if(groups_, [](const Group& group) { return group.requests.empty(); });
}

}  // namespace tenon::serve
