// SPDX-License-Identifier: Apache-2.0
// Collectives of f32 and i32, which the unmodified backend does not offer: ranks of this process meet, and the last one computes for all.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mutant.h"

namespace tenon::mutants {
namespace {

constexpr std::uint64_t combined_dtypes = TENON_DTYPE_BIT(TENON_DTYPE_F32) | TENON_DTYPE_BIT(TENON_DTYPE_I32);

/// What some ranks do together, and what each of them has given.
struct Meeting {
  std::map<std::uint32_t, tenon_collective> calls;  ///< by rank
  std::vector<std::uint32_t> arrivals;              ///< ranks, in the order in which they came
  bool done = false;
};

/// The ranks of one id.
struct World {
  explicit World(std::uint32_t ranks) : size(ranks), posted(ranks, 0) {}

  const std::uint32_t size;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint32_t joined = 0;
  std::vector<std::uint64_t> posted;                                                                  ///< by rank
  std::map<std::uint64_t, std::shared_ptr<Meeting>> collectives;                                      ///< by number
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::shared_ptr<Meeting>>> messages;  ///< by sender and receiver
};

struct Group {
  std::shared_ptr<World> world;
  std::uint32_t rank;
  const tenon_host* host;
  void* notes = nullptr;  ///< memory of the host, by which a leak shows
  bool aborted = false;   ///< guarded by the world's mutex
  static constexpr std::uint64_t notes_size_bytes = 64;
  static Group& of(tenon_group* group) { return *reinterpret_cast<Group*>(group); }
};

std::mutex mutex;  ///< guards the two below
std::uint64_t last_id = 0;
std::map<std::uint64_t, std::weak_ptr<World>> worlds;

tenon_status group_id(tenon_backend*, tenon_group_id* out_id, tenon_error*) {
  const std::lock_guard lock(mutex);
  if (!is(Mutation::one_id_for_all_groups) || last_id == 0) ++last_id;
  std::memset(out_id, 0, sizeof *out_id);
  std::memcpy(out_id, &last_id, sizeof last_id);
  return TENON_OK;
}

tenon_status group_create(tenon_device* device, const tenon_group_request* request, tenon_group** out_group, tenon_error* error) {
  if (request->needs != 0) return say(error, TENON_UNSUPPORTED, "an unknown bit of needs");
  if (request->deterministic > 1) return say(error, TENON_UNSUPPORTED, "deterministic is neither 0 nor 1");
  if (request->rank >= request->size && !is(Mutation::joins_as_any_rank))
    return say(error, TENON_INVALID_ARGUMENT, "the rank is not below the number of ranks");
  std::uint64_t id = 0;
  std::memcpy(&id, &request->id, sizeof id);
  std::shared_ptr<World> world;
  {
    const std::lock_guard lock(mutex);
    world = worlds[id].lock();
    if (world == nullptr) worlds[id] = world = std::make_shared<World>(request->size);
  }
  std::unique_lock lock(world->mutex);
  ++world->joined;
  world->changed.notify_all();
  const auto all_here = [&] { return world->joined >= world->size; };
  if (request->timeout_ms == 0) {
    world->changed.wait(lock, all_here);
  } else if (!world->changed.wait_for(lock, std::chrono::milliseconds(request->timeout_ms), all_here)) {
    return say(error, TENON_VENDOR_ERROR, "not all ranks have joined the group in time");
  }
  const tenon_host* const host = host_of(device);
  auto group = std::make_unique<Group>(Group{world, request->rank, host, host->allocate(host->context, Group::notes_size_bytes, 64)});
  *out_group = reinterpret_cast<tenon_group*>(group.release());
  return TENON_OK;
}

void group_destroy(tenon_group* group) {
  if (is(Mutation::leaks_groups)) return;
  Group& own = Group::of(group);
  own.host->release(own.host->context, own.notes, Group::notes_size_bytes);
  delete &own;
}

bool combines(const tenon_collective& c) {
  return c.kind == TENON_COLLECTIVE_ALL_REDUCE || c.kind == TENON_COLLECTIVE_REDUCE_SCATTER;
}

tenon_status why_not(const tenon_collective& c, const Group& group, tenon_error* error) {
  const std::uint64_t element = c.dtype < TENON_DTYPE_COUNT ? size_of(c.dtype) : 0;
  if (c.needs != 0 || c.kind < TENON_COLLECTIVE_ALL_REDUCE || c.kind > TENON_COLLECTIVE_RECEIVE || element == 0)
    return say(error, TENON_UNSUPPORTED, "an unknown kind, dtype or bit of needs");
  if (combines(c)) {
    if ((combined_dtypes & TENON_DTYPE_BIT(c.dtype)) == 0 || c.operation < TENON_REDUCE_SUM || c.operation > TENON_REDUCE_AVG ||
        (c.operation == TENON_REDUCE_AVG && c.dtype == TENON_DTYPE_I32))
      return say(error, TENON_UNSUPPORTED, "ranks do not combine elements of this dtype in this way");
  } else if (c.kind >= TENON_COLLECTIVE_BROADCAST && c.peer >= group.world->size) {
    return say(error, TENON_INVALID_ARGUMENT, "no such rank");
  }
  if (c.count > UINT64_MAX / 2 / element / group.world->size) return say(error, TENON_INVALID_ARGUMENT, "too many elements");
  const bool reads = c.kind != TENON_COLLECTIVE_RECEIVE && (c.kind != TENON_COLLECTIVE_BROADCAST || c.peer == group.rank);
  const auto wrong = [&](std::uint64_t address) { return c.count > 0 && (address == 0 || address % element != 0); };
  if ((reads && wrong(c.source)) || (c.kind != TENON_COLLECTIVE_SEND && wrong(c.destination)))
    return say(error, TENON_INVALID_ARGUMENT, "an operand that is 0 or not aligned to its elements");
  return TENON_OK;
}

template <class T>
T combined(const Meeting& meeting, const std::vector<std::uint32_t>& order, std::uint64_t i) {
  const std::uint32_t operation = meeting.calls.begin()->second.operation;
  const auto element = [&](std::uint32_t rank) {
    T value;
    std::memcpy(&value, bytes_at(meeting.calls.at(rank).source) + i * sizeof value, sizeof value);
    return value;
  };
  T result = element(order[0]);
  for (std::size_t r = 1; r < order.size(); ++r) {
    const T x = element(order[r]);
    result = operation == TENON_REDUCE_MAX    ? std::max(result, x)
             : operation == TENON_REDUCE_MIN  ? std::min(result, x)
             : operation == TENON_REDUCE_PROD ? result * x
                                              : result + x;
  }
  return operation == TENON_REDUCE_AVG ? result / static_cast<T>(order.size()) : result;
}

/// Computes the results of all ranks: at first beside their operands, which they may replace.
void compute(const Meeting& meeting, bool as_they_arrive, bool in_reverse) {
  const tenon_collective& first = meeting.calls.begin()->second;
  const std::uint64_t element = size_of(first.dtype), bytes = first.count * element, ranks = meeting.calls.size();
  std::vector<std::uint32_t> order;
  for (const auto& [rank, call] : meeting.calls) order.push_back(rank);
  if (as_they_arrive) order = meeting.arrivals;
  std::vector<unsigned char> result;
  const auto append = [&](std::uint64_t address) { result.insert(result.end(), bytes_at(address), bytes_at(address) + bytes); };
  if (combines(first)) {
    const std::uint64_t count = first.kind == TENON_COLLECTIVE_REDUCE_SCATTER ? first.count * ranks : first.count;
    result.resize(count * element);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto store = [&](auto value) { std::memcpy(result.data() + i * element, &value, sizeof value); };
      if (first.dtype == TENON_DTYPE_F32) {
        store(combined<float>(meeting, order, i));
      } else {
        store(combined<std::int32_t>(meeting, order, i));
      }
    }
  } else if (first.kind == TENON_COLLECTIVE_ALL_GATHER) {
    if (in_reverse) std::reverse(order.begin(), order.end());
    for (const std::uint32_t rank : order) append(meeting.calls.at(rank).source);
  } else if (first.kind == TENON_COLLECTIVE_BROADCAST) {
    append(meeting.calls.at(first.peer).source);
  } else {
    for (const auto& [rank, call] : meeting.calls) {
      if (call.kind == TENON_COLLECTIVE_SEND) append(call.source);
    }
  }
  for (const auto& [rank, call] : meeting.calls) {
    if (call.kind == TENON_COLLECTIVE_SEND || result.empty()) continue;
    const bool takes_part = call.kind == TENON_COLLECTIVE_REDUCE_SCATTER;
    std::memcpy(bytes_at(call.destination), result.data() + (takes_part ? rank * bytes : 0), takes_part ? bytes : result.size());
  }
}

/// Adds a call to the meeting that it belongs to.
std::shared_ptr<Meeting> post(Group& group, const tenon_collective& call, bool* out_complete) {
  World& world = *group.world;
  std::shared_ptr<Meeting> meeting;
  if (call.kind < TENON_COLLECTIVE_SEND) {
    const std::uint64_t number = world.posted[group.rank]++;
    std::shared_ptr<Meeting>& found = world.collectives[number];
    if (found == nullptr) found = std::make_shared<Meeting>();
    meeting = found;
    meeting->calls[group.rank] = call;
    *out_complete = meeting->calls.size() == world.size;
    if (*out_complete) world.collectives.erase(number);
  } else {
    auto& waiting = call.kind == TENON_COLLECTIVE_SEND ? world.messages[{group.rank, call.peer}] : world.messages[{call.peer, group.rank}];
    auto found = std::find_if(waiting.begin(), waiting.end(), [&](const auto& m) { return m->calls.count(group.rank) == 0; });
    if (found == waiting.end()) found = waiting.insert(waiting.end(), std::make_shared<Meeting>());
    meeting = *found;
    meeting->calls[group.rank] = call;
    *out_complete = meeting->calls.size() == 2;
    if (*out_complete) waiting.erase(found);
  }
  meeting->arrivals.push_back(group.rank);
  return meeting;
}

tenon_status submit(tenon_group* handle, const tenon_collective* collectives, std::uint32_t stride, std::uint32_t count, tenon_stream*,
                    tenon_error* error) {
  const bool as_they_arrive = is(Mutation::sums_as_ranks_arrive), in_reverse = is(Mutation::gathers_in_reverse);
  Group& group = Group::of(handle);
  if (count == 0) return TENON_OK;
  if (collectives == nullptr || stride < sizeof(tenon_collective))
    return say(error, TENON_INVALID_ARGUMENT, "no collectives, or too short ones");
  std::vector<tenon_collective> list(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(&list[i], reinterpret_cast<const char*>(collectives) + std::size_t{i} * stride, sizeof list[i]);
    if (const tenon_status status = why_not(list[i], group, error); status != TENON_OK) return status;
  }
  World& world = *group.world;
  std::unique_lock lock(world.mutex);
  if (group.aborted) return say(error, TENON_CANCELLED, "the group was aborted");
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (const tenon_collective& one : list) {
    bool complete = false;
    meetings.push_back(post(group, one, &complete));
    if (!complete) continue;
    compute(*meetings.back(), as_they_arrive, in_reverse);
    meetings.back()->done = true;
    world.changed.notify_all();
  }
  const auto over = [&] {
    return group.aborted || std::all_of(meetings.begin(), meetings.end(), [](const auto& meeting) { return meeting->done; });
  };
  world.changed.wait(lock, over);
  return group.aborted ? say(error, TENON_CANCELLED, "the group was aborted") : tenon_status{TENON_OK};
}

tenon_status group_query(tenon_group* handle, tenon_error* error) {
  Group& group = Group::of(handle);
  const std::lock_guard lock(group.world->mutex);
  if (!group.aborted || is(Mutation::forgets_the_abort)) return TENON_OK;
  return say(error, TENON_CANCELLED, "the group was aborted");
}

void group_abort(tenon_group* handle) {
  if (is(Mutation::loses_the_abort)) return;
  Group& group = Group::of(handle);
  const std::lock_guard lock(group.world->mutex);
  group.aborted = true;
  group.world->changed.notify_all();
}

}  // namespace

void spoil_collectives(tenon_backend_table& table) {
  static tenon_collectives_table collectives{};
  if (!(is(Mutation::unmodified_collectives) || is(Mutation::one_id_for_all_groups) || is(Mutation::joins_as_any_rank) ||
        is(Mutation::leaks_groups) || is(Mutation::sums_as_ranks_arrive) || is(Mutation::gathers_in_reverse) ||
        is(Mutation::forgets_the_abort) || is(Mutation::loses_the_abort)))
    return;
  collectives.struct_size = sizeof collectives;
  collectives.dtypes = combined_dtypes;
  collectives.group_id = group_id;
  collectives.group_create = group_create;
  collectives.group_destroy = group_destroy;
  collectives.submit = submit;
  collectives.group_query = group_query;
  collectives.group_abort = group_abort;
  table.collectives = &collectives;
}

}  // namespace tenon::mutants
