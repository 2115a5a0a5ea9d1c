// SPDX-License-Identifier: Apache-2.0
// collectives.h - what the backend offers of the ABI's collectives: all of them by NCCL, or none if its headers were missing at build time.
// A rank is in nccl_group.cpp: Device::join.
#pragma once

#include <tenon/backend.h>
#include <tenon/sdk/host.h>
#include <cstdint>

namespace tenon::cuda {

/// BackendSpec::combined_dtypes.
std::uint64_t combined_dtypes();
/// Backend::make_group_id. Errors  INCOMPATIBLE: NCCL is missing or too old.
tenon_group_id make_group_id(const sdk::Host& host);

}  // namespace tenon::cuda
