// SPDX-License-Identifier: Apache-2.0
// communicator.h - ranks that are threads of this process, and what they have posted to each other.
#pragma once

#include <nccl.h>
#include <state.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tenon::emulation {

enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

/// A call of one rank.
struct Call {
  Kind kind;
  const void* source;
  void* destination;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int peer;
  std::shared_ptr<Stream> stream;
};

/// What several ranks do together. It is queued on all of their streams at once, when the last of them has posted it: so the operations of
/// all streams have one order, and none waits for one that comes later.
struct Operation {
  std::map<int, Call> calls;                    ///< by rank
  std::map<int, std::uint64_t> positions = {};  ///< by rank: the work of its stream before this
  bool queued = false, done = false;
};

/// The ranks of one id.
struct World {
  explicit World(int ranks) : devices(static_cast<std::size_t>(ranks), -1), posted(devices.size(), 0) {}

  std::mutex mutex;
  std::vector<int> devices;  ///< by rank; -1: it has not joined
  int joined = 0;
  std::vector<std::uint64_t> posted;                                               ///< by rank: collectives of all ranks
  std::map<std::uint64_t, std::shared_ptr<Operation>> collectives;                 ///< by number; until all ranks have posted it
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Operation>>> messages;  ///< by sender and receiver; until both have posted it
  ncclResult_t failure = ncclSuccess;
  std::string text;  ///< of the failure
};

}  // namespace tenon::emulation

/// One rank.
struct ncclComm {
  std::shared_ptr<tenon::emulation::World> world;
  int rank;
  std::vector<std::shared_ptr<tenon::emulation::Operation>> pending = {};  ///< posted, not known to be queued
};

namespace tenon::emulation {

/// Posts a call. Errors  ncclInvalidArgument for one that does not fit those of other ranks: the world fails.
ncclResult_t post(ncclComm& communicator, const Call& call);
/// ncclInProgress until all ranks have joined and posted what this one has.
ncclResult_t state_of(ncclComm& communicator);

}  // namespace tenon::emulation
