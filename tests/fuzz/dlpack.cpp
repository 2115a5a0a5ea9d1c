// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries: any DLManagedTensor whose memory is at least as large as it says.
#include <dlpack/dlpack.h>
#include <tenon/dlpack.h>

#include "fuzz.h"

namespace {
int released = 0;
alignas(64) unsigned char memory[4096];
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  Bytes bytes(data, size);
  std::int64_t shape[16], strides[16];
  for (std::int64_t& n : shape) n = static_cast<std::int64_t>(odd_number(bytes));
  for (std::int64_t& n : strides) n = static_cast<std::int64_t>(odd_number(bytes));
  DLManagedTensor managed{};
  DLTensor& tensor = managed.dl_tensor;
  tensor.ndim = static_cast<std::int32_t>(odd_number(bytes));
  if (tensor.ndim > 16) tensor.ndim = 16;  // the number of sizes in the arrays
  tensor.dtype.code = bytes.take<std::uint8_t>();
  tensor.dtype.bits = bytes.take<std::uint8_t>();
  tensor.dtype.lanes = bytes.take<std::uint16_t>();
  tensor.device.device_type = static_cast<DLDeviceType>(bytes.below(16));
  tensor.byte_offset = odd_number(bytes);
  const std::uint8_t absent = bytes.take<std::uint8_t>();
  tensor.data = (absent & 1) != 0 ? nullptr : memory;
  tensor.shape = (absent & 2) != 0 ? nullptr : shape;
  tensor.strides = (absent & 4) != 0 ? nullptr : strides;
  managed.deleter = [](DLManagedTensor*) { ++released; };
  released = 0;
  bool taken = false;
  {
    Tensor tensor_of;
    taken = accepts([&] { tensor_of = from_dlpack(&managed); });
    demand(released == 0, "memory is released by whoever holds it last");
    if (taken) demand(tensor_of.shape().rank() == static_cast<std::size_t>(tensor.ndim), "a tensor has the rank it came with");
  }
  demand(released == (taken ? 1 : 0), "the deleter is called once, and not at all after a refusal");
  return 0;
}
