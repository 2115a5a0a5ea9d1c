// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <algorithm>
#include <string>
#include <utility>

#include "handles.h"

namespace tenon::sdk {

std::shared_ptr<Timing> Profile::begin(Device& device, std::size_t kernels) {
  std::shared_ptr<Timing> timing;
  {
    const std::lock_guard lock(mutex_);
    if (executions_.size() >= kept) {
      timing = std::move(executions_.front());
      executions_.erase(executions_.begin());
    }
  }
  if (timing == nullptr || timing.use_count() > 1) timing = std::make_shared<Timing>();  // else another thread reads it
  while (timing->marks.size() <= kernels) timing->marks.push_back(device.make_event({}));
  return timing;
}

void Profile::end(std::shared_ptr<Timing> timing, std::uint64_t execution_id, tenon_stream& stream) {
  const std::lock_guard lock(mutex_);
  if (stream.recording) {
    timing->execution = 0;
    std::erase_if(recordings_, [](const std::weak_ptr<Timing>& recording) { return recording.expired(); });
    recordings_.push_back(timing);
    stream.timings.push_back(std::move(timing));
    return;
  }
  timing->execution = execution_id;
  executions_.push_back(std::move(timing));
  if (executions_.size() > kept) executions_.erase(executions_.begin());
}

std::shared_ptr<const Timing> Profile::find(std::uint64_t execution_id) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const std::shared_ptr<Timing>& timing) { return timing != nullptr && timing->execution == execution_id; };
  const auto found = std::find_if(executions_.rbegin(), executions_.rend(), is_it);
  if (found != executions_.rend()) return *found;
  for (const std::weak_ptr<Timing>& recording : recordings_) {
    if (std::shared_ptr<Timing> timing = recording.lock(); is_it(timing)) return timing;
  }
  throw Error(TENON_INVALID_ARGUMENT, "profile read: expected the id of one of the last " + std::to_string(kept) +
                                          " executions of the plan, or of the last replay of a recording made with an id, got " +
                                          std::to_string(execution_id));
}

}  // namespace tenon::sdk
