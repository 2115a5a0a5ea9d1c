// SPDX-License-Identifier: Apache-2.0
#include "platform/per_thread.h"

namespace tenon::platform {

ThreadValues::~ThreadValues() {
  while (!values_.empty()) {
    // Its destructor may use others of the thread.
    const std::shared_ptr<void> last = std::move(values_.back().second);
    values_.pop_back();
  }
}

void* ThreadValues::find(const void* key) const {
  for (const auto& [owner, value] : values_) {
    if (owner == key) return value.get();
  }
  return nullptr;
}

void ThreadValues::add(const void* key, std::shared_ptr<void> value) {
  values_.emplace_back(key, std::move(value));
}

}  // namespace tenon::platform
