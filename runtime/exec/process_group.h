// SPDX-License-Identifier: Apache-2.0
// exec/process_group.h - the processes that train a model together, connected by a transport plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/communicator.h>
#include <tenon/transport.h>

namespace tenon::exec {

/// The processes of a launcher, and this one's place among them. Every process makes the same calls in the same order.
/// Threads  one at a time; abort() and set_advice() any.
class ProcessGroup : public std::enable_shared_from_this<ProcessGroup> {
 public:
  /// Connects by the transport of this name or file; the same group again for the same transport. It ends when the process does: with the
  /// others, unless an error has been reported by abort(). A process that shows no sign of life for `timeout_s` seconds is an error of the
  /// others; 0: no limit.
  /// Errors  no such transport, one that cannot be used, another one than before, a failed connection.
  static std::shared_ptr<ProcessGroup> connect(const std::string& transport, double timeout_s);
  /// The group that connect() has made; null: none.
  static std::shared_ptr<ProcessGroup> current();
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const std::string& transport() const { return name_; }
  int rank() const { return static_cast<int>(group_.rank); }
  int size() const { return static_cast<int>(group_.size); }

  /// The texts of all processes, by rank.
  std::vector<std::string> gather(const std::string& text);
  /// The bytes of process `root` replace those of the others.
  void broadcast(void* data, std::uint64_t size_bytes, int root = 0) { wait(begin_broadcast(data, size_bytes, root)); }
  /// The numbers become their sums over all processes.
  void sum(std::vector<double>& numbers);
  /// Whether the flag is set on any process.
  bool any(bool flag);
  /// This process's end of sums over all of them. Collectives of programs and of this object may follow each other in any order that is the
  /// same on all processes.
  std::shared_ptr<Communicator> communicator();
  /// Ends all processes with this reason. Returns if the transport cannot.
  void abort(const std::string& reason) noexcept;
  /// What abort() says after its reason, from any thread; null: nothing.
  void set_advice(std::function<std::string()> advice);

  // For the communicator.
  std::uint64_t begin_sum(void* data, std::int64_t count, DType dtype);
  std::uint64_t begin_broadcast(void* data, std::uint64_t size_bytes, int root);
  void wait(std::uint64_t collective);

 private:
  ProcessGroup(std::string name, tenon_transport* handle, const tenon_transport_table& table, tenon_transport_group group)
      : name_(std::move(name)), handle_(handle), table_(table), group_(group) {}

  const std::string name_;
  tenon_transport* const handle_;
  const tenon_transport_table& table_;
  const tenon_transport_group group_;
  std::mutex mutex_;  ///< guards advice_
  std::function<std::string()> advice_;
};

}  // namespace tenon::exec
