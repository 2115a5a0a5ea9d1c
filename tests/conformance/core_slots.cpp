// SPDX-License-Identifier: Apache-2.0
// Every function of the plugin ABI with a case that exercises it: a slot without a case fails the suite.
#include <fmt/format.h>

#include <cstddef>
#include <set>

#include "case.h"

namespace tenon::conformance {
namespace {

/// A slot and a case of profile core that fails if the slot is wrong, as a mutant shows (tests/abi/gate.py).
struct Slot {
  const char* name;
  std::size_t offset;
  const char* judge;
};
struct SlotTable {
  const char* name;
  std::size_t begin, end;  ///< of the slots within the struct
  std::vector<Slot> slots;
};

#define TENON_SLOT(slot, judge) \
  { #slot, offsetof(TENON_STRUCT, slot), "core/" judge }
#define TENON_BLOCK(slot, judge) \
  { #slot, offsetof(TENON_STRUCT, slot), judge }

std::vector<SlotTable> slot_tables() {
  std::vector<SlotTable> tables;
#define TENON_STRUCT tenon_backend_table
  tables.push_back({"tenon_backend_table",
                    offsetof(TENON_STRUCT, shutdown),
                    sizeof(TENON_STRUCT),
                    {TENON_SLOT(shutdown, "lifecycle/shutdown_twice"),
                     TENON_SLOT(destroy, "lifecycle/destroy_without_shutdown"),
                     TENON_SLOT(device_count, "device/out_of_range"),
                     TENON_SLOT(device_info, "lifecycle/old_host_structs"),
                     TENON_SLOT(device_open, "device/out_of_range"),
                     TENON_SLOT(device_close, "lifecycle/create_and_destroy"),
                     TENON_SLOT(memory_allocate, "memory/huge_size"),
                     TENON_SLOT(memory_import, "import/copy"),
                     TENON_SLOT(memory_free, "memory/stats"),
                     TENON_SLOT(memory_stats, "memory/stats"),
                     TENON_SLOT(copy, "copy/round_trip"),
                     TENON_SLOT(fill, "copy/fill"),
                     TENON_SLOT(stream_create, "stream/options"),
                     TENON_SLOT(stream_destroy, "lifecycle/shutdown_closes_devices"),
                     TENON_SLOT(stream_synchronize, "stream/order"),
                     TENON_SLOT(event_create, "needs/event_options"),
                     TENON_SLOT(event_destroy, "memory/out_of_memory"),
                     TENON_SLOT(event_record, "event/again"),
                     TENON_SLOT(event_wait, "event/between_streams"),
                     TENON_SLOT(event_query, "event/lifecycle"),
                     TENON_SLOT(event_synchronize, "event/lifecycle"),
                     TENON_SLOT(event_elapsed, "event/times"),
                     TENON_SLOT(supports, "plan/malformed_graphs"),
                     TENON_SLOT(plan_create, "plan/malformed_graphs"),
                     TENON_SLOT(plan_destroy, "memory/plans_give_back"),
                     TENON_SLOT(plan_info, "plan/info"),
                     TENON_SLOT(plan_execute, "plan/missing_bindings"),
                     TENON_BLOCK(blas, ""),  // blas::gaps() pairs its routines with cases
                     TENON_SLOT(capture, "capture/replays_compute"),
                     TENON_SLOT(pack, "pack/shared"),
                     TENON_SLOT(profile, "profile/records"),
                     TENON_SLOT(extension, "extension/unknown"),
                     TENON_SLOT(collectives, "collectives/all_reduce_2")}});
#undef TENON_STRUCT
#define TENON_STRUCT tenon_capture_table
  tables.push_back({"tenon_capture_table",
                    offsetof(TENON_STRUCT, begin),
                    sizeof(TENON_STRUCT),
                    {TENON_SLOT(begin, "capture/begin_and_end_pair"), TENON_SLOT(end, "capture/begin_and_end_pair"),
                     TENON_SLOT(replay, "capture/replays_compute"), TENON_SLOT(destroy, "capture/nothing_left")}});
#undef TENON_STRUCT
#define TENON_STRUCT tenon_pack_table
  tables.push_back({"tenon_pack_table",
                    offsetof(TENON_STRUCT, describe),
                    sizeof(TENON_STRUCT),
                    {TENON_SLOT(describe, "pack/refused"), TENON_SLOT(create, "pack/refused"), TENON_SLOT(destroy, "pack/shared")}});
#undef TENON_STRUCT
#define TENON_STRUCT tenon_profile_table
  tables.push_back(
      {"tenon_profile_table", offsetof(TENON_STRUCT, read), sizeof(TENON_STRUCT), {TENON_SLOT(read, "profile/each_execution")}});
#undef TENON_STRUCT
#define TENON_STRUCT tenon_collectives_table
  tables.push_back({"tenon_collectives_table",
                    offsetof(TENON_STRUCT, group_id),
                    sizeof(TENON_STRUCT),
                    {TENON_SLOT(group_id, "collectives/ids"), TENON_SLOT(group_create, "collectives/refused_requests"),
                     TENON_SLOT(group_destroy, "collectives/nothing_left"), TENON_SLOT(submit, "collectives/same_bits_4"),
                     TENON_SLOT(group_query, "collectives/abort"), TENON_SLOT(group_abort, "collectives/abort")}});
#undef TENON_STRUCT
  // Host services, with cases in which a wrong use of them shows.
#define TENON_STRUCT tenon_host
  tables.push_back(
      {"tenon_host",
       offsetof(TENON_STRUCT, log),
       sizeof(TENON_STRUCT),
       {TENON_SLOT(log, "plan/quiet_execution"), TENON_SLOT(allocate, "memory/out_of_memory"), TENON_SLOT(release, "host/memory_intact"),
        TENON_SLOT(parallel_for, "run/threads"), TENON_SLOT(thread_count, "plan/concurrent"), TENON_SLOT(trace_begin, "run/spans_end"),
        TENON_SLOT(trace_end, "run/spans_end"), TENON_SLOT(option, "lifecycle/create_and_destroy"),
        TENON_SLOT(cache_directory, "lifecycle/create_and_destroy"), TENON_SLOT(cancel_requested, "run/cancelled"),
        TENON_SLOT(autotune_get, "host/autotune"), TENON_SLOT(autotune_put, "host/autotune"),
        TENON_SLOT(extension, "lifecycle/create_and_destroy")}});
#undef TENON_STRUCT
  return tables;
}
#undef TENON_SLOT
#undef TENON_BLOCK

}  // namespace

std::vector<std::string> slot_gaps() {
  std::set<std::string> names;
  std::vector<std::string> gaps;
  for (const Case& c : core_case_list()) {
    if (!names.insert(c.name).second) gaps.push_back(fmt::format("{}: two cases of that name", c.name));
  }
  for (const SlotTable& table : slot_tables()) {
    std::size_t expected = table.begin;
    for (const Slot& slot : table.slots) {
      if (slot.offset != expected)
        gaps.push_back(fmt::format("{}: the slot before {} has no line in core_slots.cpp", table.name, slot.name));
      expected = slot.offset + sizeof(void*);
      if (slot.judge[0] != 0 && names.count(slot.judge) == 0) {
        gaps.push_back(fmt::format("{}.{}: its case {} does not exist", table.name, slot.name, slot.judge));
      }
    }
    if (expected != table.end) gaps.push_back(fmt::format("{}: its last slots have no line in core_slots.cpp", table.name));
  }
  return gaps;
}

}  // namespace tenon::conformance
