// SPDX-License-Identifier: Apache-2.0
#include "exec/process_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <utility>

#include <tenon/error.h>

#include "core/log.h"
#include "exec/call.h"
#include "exec/device_group.h"
#include "loader/transport.h"
#include "platform/path.h"

namespace tenon::exec {
namespace {

std::mutex mutex;
std::shared_ptr<ProcessGroup> connected;  // until the process ends

std::uint64_t ns_since(std::chrono::steady_clock::time_point begin) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
}

/// The end of a group that programs use. How long a sum takes is known only where the caller waits for it.
class ProcessCommunicator final : public GroupCommunicator {
 public:
  explicit ProcessCommunicator(std::shared_ptr<ProcessGroup> group) : group_(std::move(group)) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::uint64_t begin_all_reduce(void* data, std::int64_t count, DType dtype) override {
    ++counts_.collectives;
    counts_.size_bytes += static_cast<std::uint64_t>(count * size_of(dtype));
    return group_->begin_sum(data, count, dtype);
  }
  std::uint64_t begin_broadcast(void* data, std::int64_t count, DType dtype, int root) override {
    const auto size_bytes = static_cast<std::uint64_t>(count * size_of(dtype));
    ++counts_.collectives;
    counts_.size_bytes += size_bytes;
    return group_->begin_broadcast(data, size_bytes, root);
  }
  void wait(std::uint64_t collective) override {
    const auto begin = std::chrono::steady_clock::now();
    group_->wait(collective);
    counts_.waited_ns += ns_since(begin);
  }
  void abort(const std::string& reason) noexcept override { group_->abort(reason); }
  std::uint64_t bucket_size_bytes() const override { return LinkOptions().bucket_size_bytes; }
  void sum(std::span<std::int64_t> numbers) override {
    group_->wait(group_->begin_sum(numbers.data(), static_cast<std::int64_t>(numbers.size()), DType::i64));
  }

 private:
  const std::shared_ptr<ProcessGroup> group_;
};

/// Throws unless the call succeeded.
void expect(tenon_status status, const ErrorText& error, const char* call, const ProcessGroup& group) {
  check(status, error, fmt::format("transport '{}', rank {} of {}: {}", group.transport(), group.rank(), group.size(), call));
}

}  // namespace

std::shared_ptr<ProcessGroup> ProcessGroup::current() {
  const std::lock_guard lock(mutex);
  return connected;
}

std::shared_ptr<ProcessGroup> ProcessGroup::connect(const std::string& transport, double timeout_s) {
  const std::lock_guard lock(mutex);
  if (connected != nullptr) {
    if (connected->name_ == transport) return connected;
    throw Error(fmt::format("transport '{}': this process is connected by '{}' already; expected one transport in a process", transport,
                            connected->name_));
  }
  const loader::OpenTransport opened = loader::open_transport(transport);
  if (!opened.record.usable) {
    throw Error(Status::incompatible,
                fmt::format("transport '{}'{}: {}; {}", transport,
                            opened.record.path.empty() ? "" : fmt::format(" ({})", platform::text_of(opened.record.path)),
                            opened.record.text, opened.record.remedy));
  }
  for (const std::string& warning : opened.record.warnings) log::warning("transport '{}': {}", transport, warning);
  ErrorText error;
  tenon_transport* handle = nullptr;
  const tenon_transport_table* table = nullptr;
  const std::string what = fmt::format("transport '{}' ({})", transport, opened.record.description);
  tenon_transport_request request{};
  request.struct_size = sizeof request;
  request.abi_minor_highest = TENON_TRANSPORT_ABI_MINOR;
  request.timeout_ms = static_cast<std::uint32_t>(std::clamp(std::ceil(timeout_s * 1000), 0.0, 4e9));
  const tenon_status status = guarded_call("create", error, [&] { return opened.info.create(&request, &handle, &table, error); });
  check_made(status, error, handle != nullptr && table != nullptr, "create", what);
  if (!TENON_HAS(table, tenon_transport_table, abort) || table->destroy == nullptr || table->group == nullptr ||
      table->all_reduce == nullptr || table->broadcast == nullptr || table->all_gather == nullptr || table->wait == nullptr ||
      table->abort == nullptr) {
    throw Error(Status::internal, what + ": its table lacks a function; report this to the plugin's vendor");
  }
  tenon_transport_group group{};
  group.struct_size = sizeof group;
  check(guarded_call("group", error, [&] { return table->group(handle, &group, error); }), error, what);
  if (group.size == 0 || group.rank >= group.size) {
    throw Error(Status::internal,
                fmt::format("{}: expected a rank below the number of processes, got {} of {}; report this to the plugin's vendor", what,
                            group.rank, group.size));
  }
  connected = std::shared_ptr<ProcessGroup>(new ProcessGroup(transport, handle, *table, group));
  if (group.size == 1)
    log::warning("transport '{}' connects 1 process: to train with several, start them with its launcher: mpirun -n N", transport);
  return connected;
}

ProcessGroup::~ProcessGroup() {
  table_.destroy(handle_);
}

std::vector<std::string> ProcessGroup::gather(const std::string& text) {
  const auto all_gather = [&](const void* data, std::uint64_t size, void* out) {
    ErrorText error;
    std::uint64_t collective = 0;
    expect(guarded_call("all_gather", error, [&] { return table_.all_gather(handle_, data, size, out, &collective, error); }), error,
           "all_gather", *this);
    wait(collective);
  };
  const std::uint64_t own = text.size();
  std::vector<std::uint64_t> sizes(group_.size);
  all_gather(&own, sizeof own, sizes.data());
  const std::uint64_t longest = std::max<std::uint64_t>(1, *std::ranges::max_element(sizes));
  std::string padded = text;
  padded.resize(longest);
  std::string all(longest * group_.size, '\0');
  all_gather(padded.data(), longest, all.data());
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) texts.push_back(all.substr(rank * longest, sizes[rank]));
  return texts;
}

std::uint64_t ProcessGroup::begin_broadcast(void* data, std::uint64_t size_bytes, int root) {
  ErrorText error;
  std::uint64_t collective = 0;
  const auto call = [&] { return table_.broadcast(handle_, data, size_bytes, static_cast<std::uint32_t>(root), &collective, error); };
  expect(guarded_call("broadcast", error, call), error, "broadcast", *this);
  return collective;
}

void ProcessGroup::sum(std::vector<double>& numbers) {
  wait(begin_sum(numbers.data(), static_cast<std::int64_t>(numbers.size()), DType::f64));
}

bool ProcessGroup::any(bool flag) {
  ErrorText error;
  std::uint8_t value = flag ? 1 : 0;
  std::uint64_t collective = 0;
  const auto call = [&] { return table_.all_reduce(handle_, &value, 1, TENON_DTYPE_U8, TENON_REDUCE_MAX, &collective, error); };
  expect(guarded_call("all_reduce", error, call), error, "all_reduce", *this);
  wait(collective);
  return value != 0;
}

std::shared_ptr<Communicator> ProcessGroup::communicator() {
  return std::make_shared<ProcessCommunicator>(shared_from_this());
}

std::uint64_t ProcessGroup::begin_sum(void* data, std::int64_t count, DType dtype) {
  ErrorText error;
  std::uint64_t collective = 0;
  const auto call = [&] {
    return table_.all_reduce(handle_, data, static_cast<std::uint64_t>(count), static_cast<tenon_dtype>(dtype), TENON_REDUCE_SUM,
                             &collective, error);
  };
  expect(guarded_call("all_reduce", error, call), error, "all_reduce", *this);
  return collective;
}

void ProcessGroup::wait(std::uint64_t collective) {
  ErrorText error;
  expect(guarded_call("wait", error, [&] { return table_.wait(handle_, collective, error); }), error, "wait", *this);
}

void ProcessGroup::abort(const std::string& reason) noexcept {
  try {
    std::string text = reason;
    try {
      const std::lock_guard lock(mutex_);
      const std::string advice = advice_ ? advice_() : std::string();
      if (!advice.empty()) text += ". " + advice;
    } catch (...) {  // the others have to end without it, too
    }
    table_.abort(handle_, text.c_str());
  } catch (...) {  // it is over anyhow
  }
}

void ProcessGroup::set_advice(std::function<std::string()> advice) {
  const std::lock_guard lock(mutex_);
  advice_ = std::move(advice);
}

}  // namespace tenon::exec
