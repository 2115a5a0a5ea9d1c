// SPDX-License-Identifier: Apache-2.0
// attached.h - per-stream and per-device state of vendor libraries: handles, workspaces. Created at first use, destroyed before their
// owner.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tenon::cuda {

/// At most one object of each type.
///
/// Threads  any
class Attached {
 public:
  /// Returns the T; the first call constructs it as T(arguments...).
  template <class T, class... Arguments>
  T& get(Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    for (const auto& [type, object] : all_) {
      if (type == &tag<T>) return *static_cast<T*>(object.get());
    }
    auto made = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    all_.emplace_back(&tag<T>, made);
    return *made;
  }
  void clear() { all_.clear(); }

  using All = std::vector<std::pair<const void*, std::shared_ptr<void>>>;
  /// Replaces all objects and returns the previous ones.
  All exchange(All others) {
    const std::lock_guard lock(mutex_);
    std::swap(all_, others);
    return others;
  }

 private:
  template <class T>
  static constexpr char tag = 0;
  std::mutex mutex_;
  All all_;
};

}  // namespace tenon::cuda
