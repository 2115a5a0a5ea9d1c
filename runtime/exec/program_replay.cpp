// SPDX-License-Identifier: Apache-2.0
// Recordings of a program: which parts of a run are recorded, and runs that replay them.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "exec/op_versions.h"
#include "exec/program_state.h"
#include "graph/collectives.h"

namespace tenon {

/// Replays the run, recording it first if it is due. Collectives are executed between the pieces of a recording. False: the run must be
/// executed.
bool Program::State::run_recorded(std::uint64_t epoch, bool traced, exec::RunContext& context) {
  const exec::Replay::Action action = replay->next(slots, epoch, execution_id != 0);
  if (action == exec::Replay::Action::execute) return false;
  if (action == exec::Replay::Action::record) {
    std::vector<const Segment*> pieces;
    for (const Segment& segment : segments) {
      if (segment.recorded) pieces.push_back(&segment);
    }
    if (!replay->record(epoch, pieces.size(), [&](std::size_t i, tenon_stream* stream) { enqueue_segment(*pieces[i], epoch, stream); }))
      return false;
  }
  const exec::DeviceState& device = *devices.front();
  finished = 0;
  for (const Segment& segment : segments) {
    finish_collectives(segment.wait);
    if (segment.recorded) {
      std::uint64_t begin_ns = traced ? exec::TraceRecorder::now_ns() : 0;
      const tenon_status status = replay->replay(*segment.recorded, execution_id, error);
      submitted = segment.end;
      if (status != TENON_OK) fail(status, device, nullptr);
      if (traced) wait_for(device, nullptr);
      for (Part& part : std::span(parts).subspan(segment.begin, segment.end - segment.begin)) {
        if (part.plan == nullptr) continue;
        if (part.updates) context.finish();
        if (traced) begin_ns = record(part, begin_ns, 0);  // plans of one launch: each is shown where the one before ends
      }
    }
    if (segment.end == segment.begin || parts[segment.end - 1].plan != nullptr) continue;
    if (!context.finishes() && context.cancelled()) cancel(fmt::format("plan {} of {}", segment.end, parts.size()));
    begin(collectives[parts[segment.end - 1].collective]);
    submitted = segment.end;
    context.finish();  // other ranks may update their parameters as soon as all have begun
  }
  finish_collectives(collectives.size());
  submitted = parts.size();
  if (action == exec::Replay::Action::replay) {  // a recorded run has counted its copies already
    const auto count = [&](const Copy& copy) {
      if (copy.size > 0) device.copy_counters->add_copy(TENON_COPY_DEVICE_TO_DEVICE, copy.size);
    };
    for (const std::vector<Copy>& copies : before) std::for_each(copies.begin(), copies.end(), count);
    std::for_each(after.begin(), after.end(), count);
  }
  return true;
}

/// Submits a segment of a run on one device to a recording stream.
void Program::State::enqueue_segment(const Segment& segment, std::uint64_t epoch, tenon_stream* stream) {
  exec::DeviceState& device = *devices.front();
  const auto enqueue_copy = [&](const Copy& copy) {
    device.copy(TENON_COPY_DEVICE_TO_DEVICE, slots[copy.destination], slots[copy.source], copy.size, nullptr, stream);
  };
  for (std::size_t p = segment.begin; p < segment.end; ++p) {
    std::for_each(before[p].begin(), before[p].end(), enqueue_copy);
    if (parts[p].plan == nullptr) continue;
    const tenon_bindings bindings = bind(parts[p], epoch, nullptr);
    const tenon_status status = exec::guarded_call(
        "plan_execute", error, [&] { return device.table.plan_execute(parts[p].plan, &bindings, parts[p].workspace, stream, error); });
    if (status != TENON_OK) fail(status, device, &parts[p]);
  }
  if (&segment == &segments.back()) std::for_each(after.begin(), after.end(), enqueue_copy);
}

/// Collectives themselves are never recorded: see ADR 76.
void Program::State::divide_into_segments() {
  segments = {{}};
  const auto cut = [&](std::size_t p, std::uint32_t wait) {
    if (segments.back().end == segments.back().begin) {
      segments.back().wait = wait;
      return;
    }
    segments.push_back({.begin = p, .end = p, .wait = wait, .recorded = {}});
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].after > segments.back().wait) cut(p, parts[p].after);
    segments.back().end = p + 1;
    if (parts[p].plan == nullptr) cut(p + 1, segments.back().wait);
  }
  const auto all = static_cast<std::uint32_t>(collectives.size());
  if (!after.empty() && segments.back().wait < all) cut(parts.size(), all);
  std::size_t count = 0;
  for (Segment& segment : segments) {
    bool has_work = &segment == &segments.back() && !after.empty();
    for (std::size_t p = segment.begin; p < segment.end; ++p) has_work = has_work || parts[p].plan != nullptr || !before[p].empty();
    if (has_work) segment.recorded = count++;
  }
}

/// The reason why runs are not recorded although the device can; empty: they are.
std::string Program::State::why_not_replayed(Capture capture) const {
  if (capture == Capture::off) return "capture is off";
  if (sync_debug) return "sync_debug waits for each node";
  if (check != CheckNumerics::off) return "check_numerics reads results";
  const DevicePointer& device = devices.front();
  const auto crosses = [&](const Copy& copy) { return copy.from != device || copy.to != device; };
  const auto any_crosses = [&](const std::vector<Copy>& copies) { return std::any_of(copies.begin(), copies.end(), crosses); };
  if (devices.size() > 1 || any_crosses(after) || std::any_of(before.begin(), before.end(), any_crosses))
    return "it runs on several devices";
  if (report.kernels + after.size() < 2) return "it is one launch already";
  const loader::Backend& backend = *device->loaded->backend;
  const std::span list(backend.info().capabilities, backend.info().capability_count);
  for (const NodeInfo& node : graph.nodes()) {
    if (graph::is_collective(node.op)) continue;  // it is executed between recordings
    const std::uint32_t version = exec::supported_version(backend, node);
    const auto safe = [&](const tenon_capability& c) {
      return c.op == node.op && c.version == version && (c.features & TENON_FEATURE_CAPTURE_SAFE) != 0;
    };
    if (std::none_of(list.begin(), list.end(), safe)) return fmt::format("{} '{}' cannot be recorded", op_name(node.op), node.name);
  }
  return {};
}

}  // namespace tenon
