// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <numbers.h>
#include <places.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::emulation {
namespace {

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

template <class T>
T combine(T a, T b, ncclRedOp_t operation) {
  switch (operation) {
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    case ncclProd:
      return static_cast<T>(a * b);
    default:
      return static_cast<T>(a + b);
  }
}

/// Element `index` of all sources, combined in the order of the ranks. `Wide` holds intermediate results.
template <class T, class Wide, class Load, class Store>
void reduce(const std::vector<const void*>& sources, ncclRedOp_t operation, std::size_t index, void* out, Load load_one, Store store_one) {
  Wide result = load_one(static_cast<const T*>(sources[0])[index]);
  for (std::size_t s = 1; s < sources.size(); ++s)
    result = combine<Wide>(result, load_one(static_cast<const T*>(sources[s])[index]), operation);
  if (operation == ncclAvg) result = static_cast<Wide>(result / static_cast<Wide>(sources.size()));
  *static_cast<T*>(out) = store_one(result);
}

template <class T, class Wide = T>
void reduce_as(const std::vector<const void*>& sources, ncclRedOp_t operation, std::size_t index, void* out) {
  reduce<T, Wide>(
      sources, operation, index, out, [](T x) { return static_cast<Wide>(x); }, [](Wide x) { return static_cast<T>(x); });
}

void reduce_element(const std::vector<const void*>& sources, ncclDataType_t type, ncclRedOp_t operation, std::size_t index, void* out) {
  const auto half = [&](cudaDataType_t dtype) {
    float result = 0;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const auto x = static_cast<float>(load(dtype, sources[s], static_cast<std::int64_t>(index)));
      result = s == 0 ? x : combine(result, x, operation);
    }
    if (operation == ncclAvg) result /= static_cast<float>(sources.size());
    store(dtype, out, 0, static_cast<double>(result));
  };
  const bool compares = operation == ncclMax || operation == ncclMin;  // by the sign; sums and products wrap around
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(sources, operation, index, out);
    case ncclUint8:
      return reduce_as<std::uint8_t>(sources, operation, index, out);
    case ncclInt32:
      if (compares) return reduce_as<std::int32_t>(sources, operation, index, out);
      [[fallthrough]];
    case ncclUint32:
      return reduce_as<std::uint32_t>(sources, operation, index, out);
    case ncclInt64:
      if (compares) return reduce_as<std::int64_t>(sources, operation, index, out);
      [[fallthrough]];
    case ncclUint64:
      return reduce_as<std::uint64_t>(sources, operation, index, out);
    case ncclFloat16:
      return half(CUDA_R_16F);
    case ncclBfloat16:
      return half(CUDA_R_16BF);
    case ncclFloat64:
      return reduce_as<double>(sources, operation, index, out);
    default:
      return reduce_as<float>(sources, operation, index, out);
  }
}

const char* at(const void* base, std::size_t bytes) {
  return static_cast<const char*>(base) + bytes;
}

/// Computes the results of all ranks: at first beside their operands, which they may replace.
void compute(const Operation& operation) {
  const Call& first = operation.calls.begin()->second;
  const std::size_t element = size_of(first.type), ranks = operation.calls.size(), bytes = first.count * element;
  std::vector<const void*> sources;
  for (const auto& [rank, call] : operation.calls) sources.push_back(call.source);
  std::vector<char> result;
  const auto combine_all = [&](std::size_t count) {
    result.resize(count * element);
    for (std::size_t i = 0; i < count; ++i) reduce_element(sources, first.type, first.operation, i, result.data() + i * element);
  };
  const auto hand_out = [&](std::size_t stride, std::size_t size) {
    for (const auto& [rank, call] : operation.calls)
      std::memcpy(call.destination, at(result.data(), static_cast<std::size_t>(rank) * stride), size);
  };
  switch (first.kind) {
    case Kind::all_reduce:
      combine_all(first.count);
      return hand_out(0, bytes);
    case Kind::reduce_scatter:
      combine_all(first.count * ranks);
      return hand_out(bytes, bytes);
    case Kind::all_gather:
      for (const void* source : sources) result.insert(result.end(), at(source, 0), at(source, bytes));
      return hand_out(0, bytes * ranks);
    case Kind::broadcast: {
      const void* const source = operation.calls.at(first.peer).source;
      result.assign(at(source, 0), at(source, bytes));
      return hand_out(0, bytes);
    }
    default:
      for (const auto& [rank, call] : operation.calls) {
        if (call.kind == Kind::send) result.assign(at(call.source, 0), at(call.source, bytes));
      }
      for (const auto& [rank, call] : operation.calls) {
        if (call.kind == Kind::receive) std::memcpy(call.destination, result.data(), bytes);
      }
  }
}

/// The work of one rank's stream: the first rank to come here computes for all, when the others have come as far.
void run(Operation& operation, int rank) {
  if (operation.done) return;
  operation.done = true;  // others may come back here while they catch up
  for (const auto& [other, call] : operation.calls) {
    if (other != rank) drain(*call.stream, operation.positions[other]);
  }
  set_reach(Reach::all, operation.calls.at(rank).stream->device);
  compute(operation);
}

/// Queues the operation on the streams of all its ranks.
void queue(const std::shared_ptr<Operation>& operation) {
  const std::lock_guard lock(state().lock);
  for (const auto& [rank, call] : operation->calls) {
    operation->positions[rank] = call.stream->enqueued;
    enqueue(call.stream, {[operation, rank = rank] { run(*operation, rank); }, Reach::all, ItemKind::library_call});
  }
  operation->queued = true;
}

bool same(const Call& a, const Call& b) {
  if (a.count != b.count || a.type != b.type) return false;
  if (a.kind >= Kind::send) return true;
  return a.kind == b.kind && a.operation == b.operation && a.peer == b.peer;
}

ncclResult_t fail(World& world, ncclResult_t result, std::string text) {
  world.failure = result;
  world.text = std::move(text);
  return result;
}

/// The first device that other ranks use and that cannot access a buffer of the call, although it can access other memory of the same
/// device; -1 if there is none. Ranks of one process access each other's buffers directly.
/// Source: NCCL's documentation, "NCCL_P2P_DIRECT_DISABLE".
int device_without_access(const World& world, const Call& call) {
  const std::lock_guard lock(state().lock);
  for (std::size_t rank = 0; rank < world.devices.size(); ++rank) {
    const int device = world.devices[rank];
    if (call.kind >= Kind::send && static_cast<int>(rank) != call.peer) continue;
    if (!can_access_peer(device, call.stream->device)) continue;
    for (const void* buffer : {call.source, static_cast<const void*>(call.destination)}) {
      if (buffer != nullptr && !is_granted(buffer, device)) return device;
    }
  }
  return -1;
}

/// Adds a call to an operation. True: all ranks have posted theirs.
ncclResult_t add(World& world, const std::shared_ptr<Operation>& operation, int rank, const Call& call, std::size_t ranks,
                 bool* out_complete) {
  if (!operation->calls.empty() && !same(operation->calls.begin()->second, call)) {
    return fail(world, ncclInvalidArgument,
                "rank " + std::to_string(rank) + " posted another collective than rank " + std::to_string(operation->calls.begin()->first));
  }
  operation->calls.emplace(rank, call);
  *out_complete = operation->calls.size() == ranks;
  return ncclSuccess;
}

}  // namespace

ncclResult_t post(ncclComm& communicator, const Call& call) {
  World& world = *communicator.world;
  const int rank = communicator.rank;
  const std::lock_guard lock(world.mutex);
  if (world.failure != ncclSuccess) return world.failure;
  if (const int device = device_without_access(world, call); device >= 0) {
    return fail(
        world, ncclUnhandledCudaError,
        "device " + std::to_string(device) + " was not granted access to the memory pool of a buffer of rank " + std::to_string(rank));
  }
  std::shared_ptr<Operation> operation;
  bool complete = false;
  ncclResult_t result = ncclSuccess;
  if (call.kind < Kind::send) {
    std::uint64_t& number = world.posted[static_cast<std::size_t>(rank)];
    std::shared_ptr<Operation>& found = world.collectives[number];
    if (found == nullptr) found = std::make_shared<Operation>();
    operation = found;
    result = add(world, operation, rank, call, world.devices.size(), &complete);
    if (complete) world.collectives.erase(number);
    ++number;
  } else {
    auto& waiting = call.kind == Kind::send ? world.messages[{rank, call.peer}] : world.messages[{call.peer, rank}];
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const auto& o) { return o->calls.count(rank) == 0; });
    operation = found != waiting.end() ? *found : waiting.emplace_back(std::make_shared<Operation>());
    result = add(world, operation, rank, call, 2, &complete);
    if (complete) waiting.pop_front();
  }
  if (result != ncclSuccess) return result;
  if (complete) {
    queue(operation);
  } else {
    communicator.pending.push_back(operation);
  }
  return ncclSuccess;
}

ncclResult_t state_of(ncclComm& communicator) {
  World& world = *communicator.world;
  const std::lock_guard lock(world.mutex);
  if (world.failure != ncclSuccess) return world.failure;
  if (static_cast<std::size_t>(world.joined) < world.devices.size()) return ncclInProgress;
  std::erase_if(communicator.pending, [](const auto& operation) { return operation->queued; });
  return communicator.pending.empty() ? ncclSuccess : ncclInProgress;
}

}  // namespace tenon::emulation
