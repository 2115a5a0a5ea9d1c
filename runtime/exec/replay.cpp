// SPDX-License-Identifier: Apache-2.0
#include "exec/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/log.h"

namespace tenon::exec {
namespace {

/// Record at the third run at the same addresses: it is likely to recur, a first or second one is not.
constexpr std::size_t executions_before = 2;
/// Address sets to track: two alternating input buffers times two output buffers.
constexpr std::size_t max_entries = 4;
/// Maximum of consecutive unused recordings.
constexpr int max_wasted = 4;

}  // namespace

Replay::~Replay() {
  if (!device_->in_its_process()) return;
  in_flight_ = false;  // the program has waited
  for (Entry& entry : entries_) destroy(entry);
  if (stream_ != nullptr) device_->table.stream_destroy(stream_);
}

void Replay::destroy(Entry& entry) {
  if (in_flight_ && !entry.captures.empty()) {
    device_->synchronize();
    in_flight_ = false;
  }
  for (tenon_capture* const capture : entry.captures) device_->table.capture->destroy(capture);
  entry.captures.clear();
  entry.failed = false;
}

void Replay::drop(Entry& entry) {
  if (entry.captures.empty()) return;
  destroy(entry);
  wasted_ = entry.replays > 1 ? 0 : wasted_ + 1;
  entry.replays = 0;
}

void Replay::stop(std::string reason) {
  log::debug("device '{}': a program is executed op by op, not replayed: {}", device_->info.name, reason);
  for (Entry& entry : entries_) drop(entry);
  stopped_ = std::move(reason);
}

/// Moves the entry of these addresses to the front. A new entry replaces the least recently used one.
Replay::Entry& Replay::entry_of(std::span<const std::uint64_t> addresses) {
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return std::ranges::equal(e.addresses, addresses); });
  if (found == entries_.end()) {
    if (entries_.size() < max_entries) entries_.emplace_back();
    found = entries_.end() - 1;
    drop(*found);
    found->addresses.assign(addresses.begin(), addresses.end());
    found->executions = 0;
  }
  std::rotate(entries_.begin(), found, found + 1);
  return entries_.front();
}

Replay::Action Replay::next(std::span<const std::uint64_t> addresses, std::uint64_t parameters_epoch, bool measured) {
  if (!stopped_.empty()) return Action::execute;
  Entry& entry = entry_of(addresses);
  if (entry.failed) drop(entry);
  if (std::exchange(entry.measured, measured) != measured) {
    drop(entry);
    wasted_ = 0;  // it was not the addresses that changed
  }
  if (!entry.captures.empty()) {
    if (packs_ == Packs::no || entry.epoch == parameters_epoch) return Action::replay;
    drop(entry);
  }
  if (wasted_ >= max_wasted) {
    stop(fmt::format("{} consecutive recordings were used only once; addresses or parameters change in almost every run", wasted_));
    return Action::execute;
  }
  if (entry.executions < executions_before) {
    ++entry.executions;
    return Action::execute;
  }
  return packs_ == Packs::yes && executed_epoch_ != parameters_epoch ? Action::execute : Action::record;
}

void Replay::executed(std::uint64_t parameters_epoch) {
  executed_epoch_ = parameters_epoch;
}

bool Replay::record(std::uint64_t parameters_epoch, std::size_t pieces,
                    const std::function<void(std::size_t piece, tenon_stream*)>& submit) {
  const tenon_capture_table& table = *device_->table.capture;
  const bool new_epoch = executed_epoch_ != parameters_epoch;
  ErrorText error;
  Entry& entry = entries_.front();
  bool open = false;
  const auto give_up = [&] {
    ErrorText ignored;
    tenon_capture* capture = nullptr;
    if (open && table.end(stream_, &capture, ignored) == TENON_OK) table.destroy(capture);
    destroy(entry);
  };
  try {
    if (stream_ == nullptr) {
      const tenon_status made = device_->table.stream_create(device_->handle, nullptr, &stream_, error);
      check_made(made, error, stream_ != nullptr, "stream_create", "a stream for recordings");
    }
    entry.captures.reserve(pieces);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      check(table.begin(stream_, error), error, "cannot begin a recording");
      open = true;
      submit(piece, stream_);
      open = false;
      tenon_capture* capture = nullptr;
      const tenon_status ended = table.end(stream_, &capture, error);
      check_made(ended, error, capture != nullptr, "capture.end", "cannot end a recording");
      entry.captures.push_back(capture);
    }
  } catch (const Error& refusal) {
    give_up();
    if (refusal.status() == Status::unsupported && new_epoch && packs_ == Packs::unknown) {
      packs_ = Packs::yes;
    } else {
      if (refusal.status() != Status::unsupported) {
        log::warning("device '{}': a recording failed, so its program is slower from now on: {}", device_->info.name, refusal.what());
      }
      stop(refusal.what());
    }
    return false;
  } catch (...) {
    give_up();
    throw;
  }
  if (new_epoch) packs_ = Packs::no;
  entry.epoch = parameters_epoch;
  ++records_;
  return true;
}

tenon_status Replay::replay(std::size_t piece, std::uint64_t execution_id, tenon_error* error) {
  Entry& entry = entries_.front();
  in_flight_ = true;
  const tenon_status status = [&] {
    const auto lock = device_->submission(device_->stream);
    return device_->table.capture->replay(entry.captures[piece], device_->stream, execution_id, error);
  }();
  entry.failed = status != TENON_OK;  // pieces before this one may still run: the next run drops the recording
  if (entry.failed || piece + 1 < entry.captures.size()) return status;
  ++entry.replays;
  ++replays_;
  return status;
}

}  // namespace tenon::exec
