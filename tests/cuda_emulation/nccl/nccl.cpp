// SPDX-License-Identifier: Apache-2.0
// NCCL as documented, for ranks that are threads of one process, with communicators that do not block.
//
// It is stricter than NVIDIA's: ranks that post different collectives get an error instead of undefined results.
#include "communicator.h"

#include <algorithm>
#include <cstring>

namespace {

using namespace tenon::emulation;

std::mutex mutex;  ///< guards the two below
std::uint64_t last_id = 0;
std::map<std::uint64_t, std::shared_ptr<World>> worlds;  ///< until all ranks have joined

struct Posted {
  ncclComm* communicator;
  Call call;
};
thread_local int depth = 0;
thread_local std::vector<Posted> calls;  ///< of this thread's group

ncclResult_t add(Kind kind, const void* source, void* destination, std::size_t count, ncclDataType_t type, ncclRedOp_t operation, int peer,
                 ncclComm_t communicator, cudaStream_t handle) {
  if (communicator == nullptr) return ncclInvalidArgument;
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(state().lock);
    if (find_stream(handle, &stream) != cudaSuccess || stream->capture) return ncclInvalidUsage;
  }
  if (stream->device != communicator->world->devices[static_cast<std::size_t>(communicator->rank)]) return ncclInvalidUsage;
  ncclGroupStart();
  calls.push_back({communicator, {kind, source, destination, count, type, operation, peer, stream}});
  return ncclGroupEnd();
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* out_version) {
  *out_version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* out_id) {
  const std::lock_guard lock(mutex);
  ++last_id;
  std::memset(out_id, 0, sizeof *out_id);
  std::memcpy(out_id, &last_id, sizeof last_id);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t communicator) {
  if (communicator == nullptr) return "";
  const std::lock_guard lock(communicator->world->mutex);
  return communicator->world->text.c_str();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out_communicator, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (ranks < 1 || rank < 0 || rank >= ranks || config == nullptr || config->blocking != 0) return ncclInvalidArgument;
  std::uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  std::shared_ptr<World> world;
  {
    const std::lock_guard lock(mutex);
    if (number == 0 || number > last_id) return ncclInvalidArgument;
    std::shared_ptr<World>& found = worlds[number];
    if (found == nullptr) found = std::make_shared<World>(ranks);
    world = found;
  }
  const std::lock_guard lock(world->mutex);
  const int device = caller().device;
  if (static_cast<std::size_t>(ranks) != world->devices.size() || world->devices[static_cast<std::size_t>(rank)] != -1)
    return ncclInvalidUsage;
  if (std::find(world->devices.begin(), world->devices.end(), device) != world->devices.end()) {
    world->failure = ncclInvalidUsage;
    world->text = "Duplicate GPU detected: rank " + std::to_string(rank) + " and another one are on device " + std::to_string(device);
  }
  world->devices[static_cast<std::size_t>(rank)] = device;
  if (++world->joined == ranks) {
    const std::lock_guard guard(mutex);
    worlds.erase(number);
  }
  *out_communicator = new ncclComm{world, rank};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* out_state) {
  *out_state = state_of(*communicator);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (const Posted& p : std::exchange(calls, {})) {
    if (const ncclResult_t one = post(*p.communicator, p.call); one != ncclSuccess) result = one;
  }
  return result == ncclSuccess ? ncclInProgress : result;
}

ncclResult_t ncclAllReduce(const void* source, void* destination, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::all_reduce, source, destination, count, type, operation, 0, communicator, stream);
}
ncclResult_t ncclReduceScatter(const void* source, void* destination, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::reduce_scatter, source, destination, count, type, operation, 0, communicator, stream);
}
ncclResult_t ncclAllGather(const void* source, void* destination, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return add(Kind::all_gather, source, destination, count, type, ncclSum, 0, communicator, stream);
}
ncclResult_t ncclBroadcast(const void* source, void* destination, size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                           cudaStream_t stream) {
  return add(Kind::broadcast, source, destination, count, type, ncclSum, root, communicator, stream);
}
ncclResult_t ncclSend(const void* source, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::send, source, nullptr, count, type, ncclSum, peer, communicator, stream);
}
ncclResult_t ncclRecv(void* destination, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::receive, nullptr, destination, count, type, ncclSum, peer, communicator, stream);
}

}  // extern "C"
