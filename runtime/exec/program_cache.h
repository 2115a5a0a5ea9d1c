// SPDX-License-Identifier: Apache-2.0
// exec/program_cache.h - programs by what they were compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <tenon/program.h>

namespace tenon::exec {

/// The bytes that tell one program from another; each part has a fixed size or follows its size.
class ProgramKey {
 public:
  template <class T>
  void add(T value) {
    static_assert(std::is_scalar_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void add_list(std::span<const T> list) {
    add(list.size());
    bytes_.append(reinterpret_cast<const char*>(list.data()), list.size_bytes());
  }
  void add(DType dtype, const Shape& shape) {
    add(dtype);
    add_list(shape.dims());
  }
  void add_bytes(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  void reserve(std::size_t size) { bytes_.reserve(size); }
  /// Keeps the memory, so that a key that is made again allocates nothing.
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Programs by key, bounded in number and memory; the least recently used is evicted first.
/// Threads  one at a time.
class ProgramCache {
 public:
  explicit ProgramCache(ProgramLimits limits) : limits_(limits) {}
  /// The program for `key`, created with `make` if it is not cached. Others are evicted when it exists, and never itself.
  template <class Make>
  Program& get(const std::string& key, Make&& make) {
    if (const auto found = index_.find(key); found != index_.end()) {
      ++counts_.hits;
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().program;
    }
    ++counts_.misses;
    Program program = make();
    std::uint64_t size = 0;
    for (const MemoryPlan& plan : program.memory()) size += plan.own_size_bytes();
    entries_.push_front({key, std::move(program), size});
    index_[key] = entries_.begin();
    counts_.size_bytes += size;
    while (entries_.size() > 1 && is_over_limits()) evict_last();
    counts_.programs = entries_.size();
    return entries_.front().program;
  }
  void clear() {
    while (!entries_.empty()) evict_last();
    counts_.programs = 0;
  }
  const ProgramCounts& counts() const { return counts_; }

 private:
  struct Entry {
    std::string key;
    Program program;
    std::uint64_t size_bytes;
  };
  bool is_over_limits() const {
    return entries_.size() > limits_.programs || (limits_.size_bytes != 0 && counts_.size_bytes > limits_.size_bytes);
  }
  void evict_last() {
    counts_.size_bytes -= entries_.back().size_bytes;
    ++counts_.evictions;
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }

  ProgramLimits limits_;
  ProgramCounts counts_;
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

}  // namespace tenon::exec
