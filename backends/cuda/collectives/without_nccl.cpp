// SPDX-License-Identifier: Apache-2.0
// For builds without the headers of NCCL: the block is not offered, so that nothing calls these.
#include "collectives/collectives.h"
#include "device/device.h"

namespace tenon::cuda {
namespace {

[[noreturn]] void refuse() {
  throw sdk::Error(TENON_UNSUPPORTED, "this backend was built without the headers of NCCL");
}

}  // namespace

std::uint64_t combined_dtypes() {
  return 0;
}
tenon_group_id make_group_id(const sdk::Host&) {
  refuse();
}
std::unique_ptr<sdk::Group> Device::join(const sdk::GroupOptions&) {
  refuse();
}

}  // namespace tenon::cuda
