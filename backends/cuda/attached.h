// attached.h - what vendor libraries keep for a stream or a device: handles, workspaces. Made at first use, gone before their owner is.
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
  /// The T, made by T(arguments...) when it is first asked for.
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
  /// Puts others in their places, and returns those that were there.
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
