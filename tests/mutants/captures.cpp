// SPDX-License-Identifier: Apache-2.0
// Recordings of streams, which the unmodified backend does not offer: a list of calls that a replay makes.
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "mutant.h"

namespace tenon::mutants {
namespace {

class Recording {
 public:
  Recording() = default;
  ~Recording() {
    if (host_ != nullptr) host_->release(host_->context, notes_, notes_size_bytes);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  static Recording& of(tenon_capture* capture) { return *reinterpret_cast<Recording*>(capture); }

  void add(tenon_device* device, Work work) {
    if (host_ == nullptr) {  // memory of the host, by which a leak shows
      host_ = host_of(device);
      notes_ = host_->allocate(host_->context, notes_size_bytes, 64);
    }
    works_.push_back(std::move(work));
  }
  tenon_status replay(tenon_stream* stream, tenon_error* error) {
    ++replays_;
    for (const Work& work : works_) {
      if (const tenon_status status = work(stream, error); status != TENON_OK) return status;
    }
    return TENON_OK;
  }
  int replays() const { return replays_; }

 private:
  static constexpr std::uint64_t notes_size_bytes = 64;
  const tenon_host* host_ = nullptr;
  void* notes_ = nullptr;
  std::vector<Work> works_;
  int replays_ = 0;
};

std::mutex mutex;
std::map<tenon_stream*, std::unique_ptr<Recording>> recordings;  ///< by the stream that is being recorded

tenon_status capture_begin(tenon_stream* stream, tenon_error* error) {
  const std::lock_guard lock(mutex);
  std::unique_ptr<Recording>& recording = recordings[stream];
  if (recording != nullptr && !is(Mutation::capture_begins_twice))
    return say(error, TENON_INVALID_ARGUMENT, "the stream is being recorded already");
  recording = std::make_unique<Recording>();
  return TENON_OK;
}

tenon_status capture_end(tenon_stream* stream, tenon_capture** out_capture, tenon_error* error) {
  const std::lock_guard lock(mutex);
  std::unique_ptr<Recording> recording = std::exchange(recordings[stream], nullptr);
  if (recording == nullptr && is(Mutation::capture_ends_without_begin)) recording = std::make_unique<Recording>();
  if (recording == nullptr) return say(error, TENON_INVALID_ARGUMENT, "the stream is not being recorded");
  *out_capture = reinterpret_cast<tenon_capture*>(recording.release());
  return TENON_OK;
}

tenon_status capture_replay(tenon_capture* capture, tenon_stream* stream, std::uint64_t, tenon_error* error) {
  if (is(Mutation::capture_replays_once) && Recording::of(capture).replays() > 0) return TENON_OK;
  return Recording::of(capture).replay(stream, error);
}

void capture_destroy(tenon_capture* capture) {
  if (capture == nullptr || is(Mutation::capture_leaks_recordings)) return;
  delete &Recording::of(capture);
}

/// Whether this backend offers the block: others expect that the core makes every call itself.
bool captures() {
  return is(Mutation::unmodified_capturing) || is(Mutation::capture_begins_twice) || is(Mutation::capture_ends_without_begin) ||
         is(Mutation::capture_replays_once) || is(Mutation::capture_leaks_recordings);
}

}  // namespace

bool is_recorded(tenon_stream* stream) {
  if (!captures()) return false;
  const std::lock_guard lock(mutex);
  const auto found = recordings.find(stream);
  return found != recordings.end() && found->second != nullptr;
}

void record(tenon_stream* stream, tenon_device* device, Work work) {
  const std::lock_guard lock(mutex);
  recordings[stream]->add(device, std::move(work));
}

void spoil_captures(tenon_backend_table& table) {
  static tenon_capture_table capture{};
  if (!captures()) return;
  capture.struct_size = sizeof capture;
  capture.begin = capture_begin;
  capture.end = capture_end;
  capture.replay = capture_replay;
  capture.destroy = capture_destroy;
  table.capture = &capture;
}

}  // namespace tenon::mutants
