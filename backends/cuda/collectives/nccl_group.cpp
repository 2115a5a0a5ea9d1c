// SPDX-License-Identifier: Apache-2.0
// Collectives by NCCL. Communicators do not block: calls that take long report ncclInProgress, and are waited for here, so that a group can
// be given up when a rank is missing.
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "collectives/collectives.h"
#include "device/device.h"
#include "libraries/nccl.h"

namespace tenon::cuda {
namespace {

static_assert(sizeof(tenon_group_id) == NCCL_UNIQUE_ID_BYTES);

struct Type {
  tenon_dtype dtype;
  ncclDataType_t nccl;
};
constexpr Type types[] = {
    {TENON_DTYPE_F16, ncclFloat16}, {TENON_DTYPE_BF16, ncclBfloat16}, {TENON_DTYPE_F32, ncclFloat32}, {TENON_DTYPE_F64, ncclFloat64},
    {TENON_DTYPE_I8, ncclInt8},     {TENON_DTYPE_U8, ncclUint8},      {TENON_DTYPE_I32, ncclInt32},   {TENON_DTYPE_U32, ncclUint32},
    {TENON_DTYPE_I64, ncclInt64},   {TENON_DTYPE_U64, ncclUint64},
};

ncclDataType_t type_of(tenon_dtype dtype) {
  for (const Type& type : types) {
    if (type.dtype == dtype) return type.nccl;
  }
  throw sdk::Error(TENON_UNSUPPORTED, "NCCL does not combine this dtype");
}

ncclRedOp_t operation_of(std::uint32_t operation) {
  switch (operation) {
    case TENON_REDUCE_SUM:
      return ncclSum;
    case TENON_REDUCE_MAX:
      return ncclMax;
    case TENON_REDUCE_MIN:
      return ncclMin;
    case TENON_REDUCE_PROD:
      return ncclProd;
    case TENON_REDUCE_AVG:
      return ncclAvg;
    default:
      throw sdk::Error(TENON_UNSUPPORTED, "NCCL has no operation " + std::to_string(operation));
  }
}

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// NCCL adds the elements of one buffer in an order that depends on the ranks, their connections and the size, and on nothing else: groups
/// are deterministic whether asked for or not.
class NcclGroup final : public sdk::Group {
 public:
  NcclGroup(Device& device, const sdk::GroupOptions& options) : device_(device), nccl_(nccl(device.host)) {
    device_.enter();
    ncclUniqueId id;
    std::memcpy(&id, &options.id, sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    expect(nccl_.ncclCommInitRankConfig(&communicator_, static_cast<int>(options.size), id, static_cast<int>(options.rank), &config),
           "ncclCommInitRankConfig");
    try {
      settle("ncclCommInitRankConfig", options.timeout_ms);
    } catch (const sdk::Error& e) {
      abort();
      if (e.status() != TENON_INVALID_ARGUMENT) throw;
      throw sdk::Error(TENON_UNSUPPORTED, e.what());  // two ranks are on one device
    }
  }
  ~NcclGroup() override {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) return;
    if (cudaSetDevice(device_.index()) == cudaSuccess) nccl_.ncclCommDestroy(communicator_);
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void submit(std::span<const sdk::Collective> collectives, sdk::Stream& on) override {
    device_.enter();
    Stream& stream = static_cast<Stream&>(on);
    if (stream.capturing()) throw sdk::Error(TENON_UNSUPPORTED, "submit: collectives cannot be recorded on this device");
    {
      const std::lock_guard lock(mutex_);
      expect_not_aborted();
      expect(nccl_.ncclGroupStart(), "ncclGroupStart");
      ncclResult_t first = ncclSuccess;
      const char* call = "";
      for (const sdk::Collective& c : collectives) {
        if (c.count == 0) continue;  // on every rank
        const ncclResult_t result = enqueue(c, stream.handle(), call);
        if (result != ncclSuccess && result != ncclInProgress) {
          first = result;
          break;
        }
      }
      const ncclResult_t end = nccl_.ncclGroupEnd();
      if (first != ncclSuccess) check(nccl_, first, call, communicator_);
      expect(end, "ncclGroupEnd");
    }
    settle("ncclGroupEnd", 0);
  }

  void query() override {
    const std::lock_guard lock(mutex_);
    expect_not_aborted();
    ncclResult_t state = ncclSuccess;
    check(nccl_, nccl_.ncclCommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError", communicator_);
    if (state != ncclInProgress) check(nccl_, state, "a collective", communicator_);
  }

  void abort() noexcept override {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) return;
    if (cudaSetDevice(device_.index()) == cudaSuccess) nccl_.ncclCommAbort(communicator_);
    communicator_ = nullptr;
  }

 private:
  ncclResult_t enqueue(const sdk::Collective& c, cudaStream_t stream, const char*& out_call) {
    void *const source = pointer(c.source), *const destination = pointer(c.destination);
    const std::size_t bytes = static_cast<std::size_t>(c.count) * static_cast<std::size_t>(sdk::size_of(c.dtype));
    const int peer = static_cast<int>(c.peer);
    switch (c.kind) {
      case TENON_COLLECTIVE_ALL_REDUCE:
        out_call = "ncclAllReduce";
        return nccl_.ncclAllReduce(source, destination, c.count, type_of(c.dtype), operation_of(c.operation), communicator_, stream);
      case TENON_COLLECTIVE_REDUCE_SCATTER:
        out_call = "ncclReduceScatter";
        return nccl_.ncclReduceScatter(source, destination, c.count, type_of(c.dtype), operation_of(c.operation), communicator_, stream);
      case TENON_COLLECTIVE_ALL_GATHER:
        out_call = "ncclAllGather";
        return nccl_.ncclAllGather(source, destination, bytes, ncclInt8, communicator_, stream);
      case TENON_COLLECTIVE_BROADCAST:
        out_call = "ncclBroadcast";
        return nccl_.ncclBroadcast(source != nullptr ? source : destination, destination, bytes, ncclInt8, peer, communicator_, stream);
      case TENON_COLLECTIVE_SEND:
        out_call = "ncclSend";
        return nccl_.ncclSend(source, bytes, ncclInt8, peer, communicator_, stream);
      default:
        out_call = "ncclRecv";
        return nccl_.ncclRecv(destination, bytes, ncclInt8, peer, communicator_, stream);
    }
  }

  /// Success, or a call that is in progress.
  void expect(ncclResult_t result, const char* call) {
    if (result != ncclInProgress) check(nccl_, result, call, communicator_);
  }
  void expect_not_aborted() const {
    if (communicator_ == nullptr) throw sdk::Error(TENON_CANCELLED, "the group was aborted");
  }

  /// Waits until the communicator has finished what the call began.
  void settle(const char* call, std::uint32_t timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (int round = 0;; ++round) {
      {
        const std::lock_guard lock(mutex_);
        expect_not_aborted();
        ncclResult_t state = ncclSuccess;
        check(nccl_, nccl_.ncclCommGetAsyncError(communicator_, &state), call, communicator_);
        if (state != ncclInProgress) {
          check(nccl_, state, call, communicator_);
          return;
        }
      }
      if (timeout_ms != 0 && Clock::now() - begin > std::chrono::milliseconds(timeout_ms)) {
        throw sdk::Error(TENON_VENDOR_ERROR,
                         std::string(call) + ": not all ranks have joined the group within " + std::to_string(timeout_ms / 1000) + " s");
      }
      // Launches settle within microseconds, connections within milliseconds and more.
      if (round < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  Device& device_;
  const Nccl& nccl_;
  std::mutex mutex_;  ///< guards the communicator, which abort() takes away
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::uint64_t combined_dtypes() {
  std::uint64_t set = 0;
  for (const Type& type : types) set |= TENON_DTYPE_BIT(type.dtype);
  return set;
}

tenon_group_id make_group_id(const sdk::Host& host) {
  const Nccl& functions = nccl(host);
  ncclUniqueId made;
  check(functions, functions.ncclGetUniqueId(&made), "ncclGetUniqueId", nullptr);
  tenon_group_id id;
  std::memcpy(&id, &made, sizeof id);
  return id;
}

std::unique_ptr<sdk::Group> Device::join(const sdk::GroupOptions& options) {
  return std::make_unique<NcclGroup>(*this, options);
}

}  // namespace tenon::cuda
