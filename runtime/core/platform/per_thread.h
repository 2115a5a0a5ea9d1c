// SPDX-License-Identifier: Apache-2.0
// platform/per_thread.h - objects of which each thread has its own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace tenon::platform {

/// The objects of one thread, by the address of their PerThread.
class ThreadValues {
 public:
  ThreadValues() = default;
  /// Destroys them, those that were made last first.
  ~ThreadValues();
  ThreadValues(const ThreadValues&) = delete;
  ThreadValues& operator=(const ThreadValues&) = delete;

  /// Null if it has not been made.
  void* find(const void* key) const;
  void add(const void* key, std::shared_ptr<void> value);

 private:
  std::vector<std::pair<const void*, std::shared_ptr<void>>> values_;
};

/// Of this thread. A thread that is ending and whose objects have been destroyed gets others, which are not destroyed.
ThreadValues& own_thread_values();
/// Whether this thread is ending and its objects have been destroyed. Windows does not tell: false.
bool own_thread_values_ended();

/// Like a `thread_local T` in static storage. MinGW's compiler frees the memory of those before it calls their destructors, so that only
/// types without destructors may be thread_local there (GCC bug 80816).
///
/// Threads  any. A value is destroyed when its thread ends; at the end of the process only that of the thread that ends it, if any.
template <class T>
class PerThread {
 public:
  constexpr PerThread() = default;
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// This thread's object, value-initialised at the first call.
  T& operator*() const {
    ThreadValues& values = own_thread_values();
    if (void* const value = values.find(this)) return *static_cast<T*>(value);
    auto made = std::make_shared<T>();
    T& value = *made;
    values.add(this, std::move(made));
    return value;
  }
  T* operator->() const { return &**this; }
};

}  // namespace tenon::platform
