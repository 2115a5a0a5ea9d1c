// SPDX-License-Identifier: Apache-2.0
#include "exec/device_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include <tenon/error.h>

#include "core/log.h"
#include "exec/spin.h"
#include "text/counted.h"

namespace tenon::exec {
namespace {

/// For all ranks to join: they have agreed to do it at the same time.
constexpr std::uint32_t join_timeout_ms = 60'000;

/// The collectives of a backend; null: not offered.
const tenon_collectives_table* block_of(const DeviceState& device) {
  const tenon_collectives_table* const block = device.table.collectives;
  const bool whole = block != nullptr && block->group_id != nullptr && block->group_create != nullptr && block->group_destroy != nullptr &&
                     block->submit != nullptr && block->group_query != nullptr && block->group_abort != nullptr;
  return whole ? block : nullptr;
}

/// A number that is the same for equal texts on every host, not 0, and small enough for sums of as many as there are ranks.
std::int64_t number_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::int64_t>(hash >> 2 | 1);
}

/// What every rank has given, by rank.
std::vector<std::int64_t> gather(GroupCommunicator& communicator, std::int64_t own) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(communicator.size()), 0);
  all[static_cast<std::size_t>(communicator.rank())] = own;
  communicator.sum(all);
  return all;
}

/// Whether it is so on all ranks.
bool all_agree(GroupCommunicator& communicator, bool own) {
  std::int64_t count = own ? 1 : 0;
  communicator.sum({&count, 1});
  return count == communicator.size();
}

}  // namespace

void DeviceGroup::call(const char* what, tenon_status status) const {
  check(status, error_, fmt::format("device '{}': {}", device_->info.name, what));
}

tenon_event* DeviceGroup::make_event() {
  tenon_event* event = nullptr;
  call("event_create", device_->table.event_create(device_->handle, nullptr, &event, error_));
  return event;
}

void DeviceGroup::record(tenon_event* event, tenon_stream* on) {
  const auto lock = device_->submission(on);
  call("event_record", device_->table.event_record(event, on, error_));
}

DeviceGroup::~DeviceGroup() {
  if (!device_->in_its_process()) return;
  const tenon_backend_table& table = device_->table;
  for (const Submission& made : submissions_) {
    for (tenon_event* const event : {made.begin, made.end, made.wait_begin, made.wait_end}) {
      if (event != nullptr) table.event_destroy(event);
    }
  }
  if (ready_ != nullptr) table.event_destroy(ready_);
  if (stream_ != nullptr) table.stream_destroy(stream_);
  const tenon_collectives_table& block = *block_of(*device_);
  block.group_destroy(group_);
}

void DeviceGroup::begin(std::span<const tenon_collective> collectives) {
  const tenon_backend_table& table = device_->table;
  if (begun_ == submissions_.size()) {
    Submission& made = submissions_.emplace_back();
    for (tenon_event** const event : {&made.begin, &made.end, &made.wait_begin, &made.wait_end}) *event = make_event();
  }
  Submission& submission = submissions_[begun_];
  submission.size_bytes = 0;
  for (const tenon_collective& collective : collectives)
    submission.size_bytes += collective.count * static_cast<std::uint64_t>(size_of(static_cast<DType>(collective.dtype)));
  record(ready_, device_->stream);
  call("event_wait", table.event_wait(ready_, stream_, error_));
  record(submission.begin, stream_);
  const tenon_collectives_table& block = *block_of(*device_);
  const auto submit = [&] {
    return block.submit(group_, collectives.data(), sizeof(tenon_collective), static_cast<std::uint32_t>(collectives.size()), stream_,
                        error_);
  };
  call("submit", guarded_call("submit", error_, submit));
  record(submission.end, stream_);
  ++begun_;
}

void DeviceGroup::finish() {
  const Submission& submission = submissions_[finished_];
  record(submission.wait_begin, device_->stream);
  {
    const auto lock = device_->submission(device_->stream);
    call("event_wait", device_->table.event_wait(submission.end, device_->stream, error_));
  }
  record(submission.wait_end, device_->stream);
  ++finished_;
}

void DeviceGroup::wait(GroupCommunicator& communicator) {
  const tenon_backend_table& table = device_->table;
  const tenon_collectives_table& block = *block_of(*device_);
  record(ready_, device_->stream);
  // A rank that is lost would keep the stream waiting for ever: the group is asked now and then.
  constexpr Clock::duration query_interval = std::chrono::milliseconds(100);
  Clock::time_point next_query = Clock::now() + query_interval;
  while (table.event_query(ready_, error_) == TENON_NOT_READY) {
    if (Clock::now() >= next_query) {
      next_query = Clock::now() + query_interval;
      if (block.group_query(group_, error_) != TENON_OK) break;
    }
    std::this_thread::yield();
  }
  const tenon_status status = block.group_query(group_, error_);
  if (status != TENON_OK) {
    block.group_abort(group_);
    communicator.expect_alive();
    call("collective", status);
  }
  const auto between = [&](tenon_event* begin, tenon_event* end) {
    std::uint64_t ns = 0;
    return table.event_elapsed(begin, end, &ns, error_) == TENON_OK ? ns : 0;  // else the device has failed, which is reported later
  };
  for (const Submission& done : std::span(submissions_).first(begun_)) {
    communicator.counts_.duration_ns += between(done.begin, done.end);
    communicator.counts_.waited_ns += between(done.wait_begin, done.wait_end);
    communicator.counts_.size_bytes += done.size_bytes;
    ++communicator.counts_.collectives;
  }
  begun_ = finished_ = 0;
}

void DeviceGroup::abort() noexcept {
  const tenon_collectives_table& block = *block_of(*device_);
  if (device_->in_its_process()) block.group_abort(group_);
}

std::shared_ptr<DeviceGroup> GroupCommunicator::device_group(const std::shared_ptr<DeviceState>& device, std::uint64_t dtypes) {
  if (size() == 1 || !allows_devices()) return nullptr;
  const bool can = device != nullptr && block_of(*device) != nullptr && (dtypes & ~block_of(*device)->dtypes) == 0 &&
                   (made_ == nullptr || made_->device() == device);
  const tenon_backend_info* const backend = can ? &device->loaded->backend->info() : nullptr;
  const std::vector<std::int64_t> backends =
      gather(*this, can ? number_of(fmt::format("{} {}", backend->name, backend->version)) : std::int64_t{0});
  const std::vector<std::int64_t> devices = gather(*this, can ? number_of(device->info.identity) : std::int64_t{0});
  const bool same = backends[0] != 0 && std::ranges::all_of(backends, [&](std::int64_t b) { return b == backends[0]; });
  if (!same || std::set(devices.begin(), devices.end()).size() < devices.size()) return nullptr;  // no group has a device twice
  if (made_ == nullptr) {
    made_ = join(device);
    if (made_ != nullptr) keep(made_);
  }
  return made_;
}

std::shared_ptr<DeviceGroup> GroupCommunicator::join(const std::shared_ptr<DeviceState>& device) {
  const tenon_collectives_table& block = *block_of(*device);
  const auto say = [&](const char* call, const ErrorText& error) {
    log::warning("device '{}': sums over the ranks go through the memory of the host, because its backend cannot join a group: {}: {}",
                 device->info.name, call, error.text());
  };
  tenon_group_request request{};
  request.struct_size = sizeof request;
  request.rank = static_cast<std::uint32_t>(rank());
  request.size = static_cast<std::uint32_t>(size());
  request.timeout_ms = join_timeout_ms;
  request.deterministic = 1;
  // Rank 0 makes the id, the others add zeros.
  ErrorText error;
  bool has_id = true;
  if (rank() == 0) {
    has_id =
        guarded_call("group_id", error, [&] { return block.group_id(device->loaded->backend->handle(), &request.id, error); }) == TENON_OK;
    if (!has_id) say("group_id", error);
  }
  std::array<std::int64_t, sizeof(tenon_group_id) / sizeof(std::int64_t)> words{};
  static_assert(sizeof words == sizeof(tenon_group_id));
  std::memcpy(words.data(), &request.id, sizeof words);
  sum(words);
  std::memcpy(&request.id, words.data(), sizeof words);
  if (!all_agree(*this, has_id)) return nullptr;
  tenon_group* handle = nullptr;
  const tenon_status status =
      guarded_call("group_create", error, [&] { return block.group_create(device->handle, &request, &handle, error); });
  std::shared_ptr<DeviceGroup> group;
  if (status == TENON_OK && handle != nullptr) {
    group.reset(new DeviceGroup(device, handle));
  } else {
    say("group_create", error);
  }
  if (!all_agree(*this, group != nullptr)) {
    if (group != nullptr) group->abort();
    return nullptr;
  }
  group->call("stream_create", device->table.stream_create(device->handle, nullptr, &group->stream_, group->error_));
  group->ready_ = group->make_event();
  const std::string_view backend = device->loaded->backend->info().name;
  if (rank() == 0)
    log::info("sums over {}: by the collectives of backend '{}', first on device '{}'", counted(size(), "rank"), backend,
              device->info.name);
  return group;
}

}  // namespace tenon::exec
