// SPDX-License-Identifier: Apache-2.0
#include "libraries/nccl.h"

#include <mutex>
#include <string>

namespace tenon::cuda {
namespace {

constexpr LibrarySpec spec{"NCCL", "libnccl", NCCL_MAJOR};
/// The first version whose communicators can be created without waiting, and so be given up.
constexpr int oldest_version = NCCL_VERSION(2, 14, 0);

tenon_status status_of(ncclResult_t result) {
  switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return TENON_INVALID_ARGUMENT;
    default:
      return TENON_VENDOR_ERROR;
  }
}

}  // namespace

Nccl::Nccl(const Search& search) : library(spec, search) {
  ncclGetVersion = library.function<decltype(&::ncclGetVersion)>("ncclGetVersion");
  int version = 0;
  ncclGetVersion(&version);
  library.check_version(version / 10000);
  if (version < oldest_version) {
    throw sdk::Error(TENON_INCOMPATIBLE, "NCCL: " + library.file() + " is version 2." + std::to_string(version / 100 % 100) +
                                             ", expected 2.14 or later; name the folder of that one in backends.options.cuda.libraries");
  }
#define TENON_FUNCTION(name) name = library.function<decltype(&::name)>(#name);
  TENON_NCCL_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
}

const Nccl& nccl(const sdk::Host& host) {
  // Never destroyed: other threads may still use it when the process exits.
  static constinit std::mutex mutex;
  static constinit const Nccl* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = new Nccl(search_here(host.option("libraries")));
  return *opened;
}

void check(const Nccl& functions, ncclResult_t result, const char* call, ncclComm_t communicator) {
  if (result == ncclSuccess) return;
  std::string text = std::string(call) + ": " + functions.ncclGetErrorString(result);
  const char* const last = functions.ncclGetLastError(communicator);
  if (last != nullptr && last[0] != '\0') text += ": " + std::string(last);
  throw sdk::Error(status_of(result), text);
}

}  // namespace tenon::cuda
