#include "exec/replay.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/log.h"

namespace tenon::exec {
namespace {

/// A run that comes a third time at the same addresses is likely to come again; one that is alone, or one of a pair, is not.
constexpr std::size_t executions_before = 2;
/// Sets of addresses that take turns: two buffers of inputs by two of outputs.
constexpr std::size_t most_entries = 4;
/// Recordings in a row that were of no use.
constexpr int most_wasted = 4;

}  // namespace

Replay::~Replay() {
  if (!device_->in_its_process()) return;
  for (Entry& entry : entries_) {
    if (entry.capture != nullptr) device_->table.capture->destroy(entry.capture);
  }
  if (stream_ != nullptr) device_->table.stream_destroy(stream_);
}

void Replay::drop(Entry& entry) {
  if (entry.capture == nullptr) return;
  device_->table.capture->destroy(entry.capture);
  entry.capture = nullptr;
  wasted_ = entry.replays > 1 ? 0 : wasted_ + 1;
  entry.replays = 0;
}

void Replay::stop(std::string reason) {
  log::debug("device '{}': a program is executed op by op, not replayed: {}", device_->info.name, reason);
  for (Entry& entry : entries_) drop(entry);
  stopped_ = std::move(reason);
}

/// The entry of these addresses, first in line. The one that has waited longest makes room for a new one.
Replay::Entry& Replay::entry_of(std::span<const std::uint64_t> addresses) {
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return std::ranges::equal(e.addresses, addresses); });
  if (found == entries_.end()) {
    if (entries_.size() < most_entries) entries_.emplace_back();
    found = entries_.end() - 1;
    drop(*found);
    found->addresses.assign(addresses.begin(), addresses.end());
    found->executions = 0;
  }
  std::rotate(entries_.begin(), found, found + 1);
  return entries_.front();
}

Replay::Turn Replay::next(std::span<const std::uint64_t> addresses, std::uint64_t parameters_epoch) {
  if (!stopped_.empty()) return Turn::execute;
  Entry& entry = entry_of(addresses);
  if (entry.capture != nullptr) {
    if (packs_ == Packs::no || entry.epoch == parameters_epoch) return Turn::replay;
    drop(entry);
  }
  if (wasted_ >= most_wasted) {
    stop(fmt::format("{} recordings in a row were used once only; addresses or parameters change in almost every run", wasted_));
    return Turn::execute;
  }
  if (entry.executions < executions_before) {
    ++entry.executions;
    return Turn::execute;
  }
  return packs_ == Packs::yes && executed_epoch_ != parameters_epoch ? Turn::execute : Turn::record;
}

void Replay::executed(std::uint64_t parameters_epoch) {
  executed_epoch_ = parameters_epoch;
}

bool Replay::record(std::uint64_t parameters_epoch, const std::function<void(tenon_stream*)>& give) {
  const tenon_capture_table& table = *device_->table.capture;
  const bool new_epoch = executed_epoch_ != parameters_epoch;
  CallError error;
  tenon_capture* capture = nullptr;
  bool open = false;
  try {
    if (stream_ == nullptr) check(device_->table.stream_create(device_->handle, &stream_, error.get()), error, "stream_create");
    check(table.begin(stream_, error.get()), error, "a recording cannot begin");
    open = true;
    give(stream_);
    open = false;
    check(table.end(stream_, &capture, error.get()), error, "a recording cannot end");
  } catch (const Error& refusal) {
    CallError ignored;
    if (open && table.end(stream_, &capture, ignored.get()) == TENON_OK) table.destroy(capture);
    if (refusal.status() == Status::unsupported && new_epoch && packs_ == Packs::unknown) {
      packs_ = Packs::yes;
    } else {
      stop(refusal.what());
    }
    return false;
  }
  if (new_epoch) packs_ = Packs::no;
  Entry& entry = entries_.front();
  entry.capture = capture;
  entry.epoch = parameters_epoch;
  ++records_;
  return true;
}

tenon_status Replay::replay(tenon_error* error) {
  Entry& entry = entries_.front();
  const tenon_status status = device_->table.capture->replay(entry.capture, device_->stream, error);
  if (status != TENON_OK) {
    drop(entry);
    return status;
  }
  ++entry.replays;
  ++replays_;
  return status;
}

}  // namespace tenon::exec
