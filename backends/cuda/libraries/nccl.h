// SPDX-License-Identifier: Apache-2.0
// nccl.h - NCCL, NVIDIA's collectives between GPUs, opened at first use.
#pragma once

#include <nccl.h>

#include <tenon/sdk/host.h>

#include "libraries/library.h"

/// The functions in use.
#define TENON_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)             \
  X(ncclGetUniqueId)            \
  X(ncclGetErrorString)         \
  X(ncclGetLastError)           \
  X(ncclCommInitRankConfig)     \
  X(ncclCommGetAsyncError)      \
  X(ncclCommDestroy)            \
  X(ncclCommAbort)              \
  X(ncclGroupStart)             \
  X(ncclGroupEnd)               \
  X(ncclAllReduce)              \
  X(ncclReduceScatter)          \
  X(ncclAllGather)              \
  X(ncclBroadcast)              \
  X(ncclSend)                   \
  X(ncclRecv)

namespace tenon::cuda {

struct Nccl {
  /// Errors  INCOMPATIBLE: it is missing, not of the headers' major version, or older than 2.14.
  explicit Nccl(const Search& search);

  Library library;
#define TENON_FUNCTION(name) decltype(&::name) name;
  TENON_NCCL_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
};

/// NCCL, opened by the first call and never closed. Errors and threads as those of cudnn().
const Nccl& nccl(const sdk::Host& host);

/// Throws "<call>: <NCCL's error and its last message>" unless the result is success. `communicator` may be NULL.
void check(const Nccl& functions, ncclResult_t result, const char* call, ncclComm_t communicator);

}  // namespace tenon::cuda
