// SPDX-License-Identifier: Apache-2.0
// DLPack with memory of a GPU: no copies either way.
#include "core/dlpack_versioned.h"
#include "gpu_testing.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("gpu: memory of a GPU is exported and imported in place") {
  const Context context(gpu_config());
  const Device device = context.default_device();
  const Tensor t = Tensor::of<float>({0, 1, 2, 3, 4, 5}, {2, 3}).to(device);
  CHECK(dlpack_device_of(t) == DlpackDevice{kDLCUDA, 0});
  DLManagedTensorVersioned* managed = to_dlpack_versioned(t.transpose(0, 1), true);
  CHECK(managed->dl_tensor.device.device_type == kDLCUDA);
  CHECK(managed->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK_ERROR_CONTAINS("got that of CUDA device 0", from_dlpack(managed));
  managed->dl_tensor.device.device_id = 1;
  CHECK_ERROR_CONTAINS("got that of CUDA device 1", from_dlpack(managed, device));
  managed->dl_tensor.device.device_id = 0;
  const ImportedTensor back = from_dlpack(managed, device);
  CHECK(back.read_only);
  CHECK(back.tensor.address() == t.address());
  CHECK(back.tensor.to_host().to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(context.apply(TENON_OP_Neg, {back.tensor})[0].to_host().to_vector<float>() == std::vector<float>{0, -3, -1, -4, -2, -5});
}
