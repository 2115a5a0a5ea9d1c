// SPDX-License-Identifier: Apache-2.0
// DLPack import and export: no copies, and every deleter is called once.
#include <doctest/doctest.h>

#include <dlpack/dlpack.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <tenon/dlpack.h>

#include "core/dlpack_versioned.h"
#include "dlpack_exporter.h"
#include "far_memory.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string refusal(Exporter& exporter) {
  try {
    (void)from_dlpack(&exporter.managed);
  } catch (const Error& error) {
    CHECK(exporter.deleted == 0);  // the caller still owns it
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("dlpack: an import keeps the exporter's memory until its last view is destroyed") {
  Exporter exporter;
  {
    Tensor view;
    {
      const Tensor t = from_dlpack(&exporter.managed);
      CHECK(t.str() == "f32(2,3)");
      CHECK(t.data<float>() == exporter.elements.data());
      view = t.select(0, 1);
    }
    exporter.elements[4] = 40;
    CHECK(view.to_vector<float>() == std::vector<float>{3, 40, 5});
    CHECK(exporter.deleted == 0);
  }
  CHECK(exporter.deleted == 1);
}

TEST_CASE("dlpack: strides may be absent, transposed, negative or zero") {
  Exporter exporter;
  exporter.managed.dl_tensor.strides = nullptr;
  CHECK(from_dlpack(&exporter.managed).is_dense());
  exporter.managed.dl_tensor.strides = exporter.strides.data();
  exporter.shape = {3, 2};
  exporter.strides = {1, 3};
  CHECK(from_dlpack(&exporter.managed).to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
  exporter.strides = {-1, 0};
  exporter.managed.dl_tensor.byte_offset = 2 * sizeof(float);
  CHECK(from_dlpack(&exporter.managed).to_vector<float>() == std::vector<float>{2, 2, 1, 1, 0, 0});
  CHECK(exporter.deleted == 3);
}

TEST_CASE("dlpack: byte_offset moves the first element") {
  Exporter exporter;
  exporter.shape = {1, 3};
  exporter.managed.dl_tensor.byte_offset = 3 * sizeof(float);
  CHECK(from_dlpack(&exporter.managed).to_vector<float>() == std::vector<float>{3, 4, 5});
}

TEST_CASE("dlpack: a scalar, an empty tensor, an exporter without a deleter") {
  Exporter exporter;
  exporter.managed.dl_tensor.ndim = 0;
  exporter.managed.dl_tensor.shape = nullptr;
  exporter.managed.dl_tensor.strides = nullptr;
  CHECK(from_dlpack(&exporter.managed).item() == 0.0);
  exporter.managed.dl_tensor.ndim = 2;
  exporter.managed.dl_tensor.shape = exporter.shape.data();
  exporter.shape = {0, 3};
  exporter.managed.dl_tensor.data = nullptr;
  CHECK(from_dlpack(&exporter.managed).count() == 0);
  CHECK(exporter.deleted == 2);
  exporter.managed.deleter = nullptr;
  CHECK(from_dlpack(&exporter.managed).shape() == Shape{0, 3});
}

TEST_CASE("dlpack: a rejected tensor is described and stays with the caller") {
  Exporter exporter;
  DLTensor& t = exporter.managed.dl_tensor;
  const std::string expected =
      "from_dlpack: expected float 16 to 64, bfloat 16, int and uint 8 to 64, complex 64 or 128, or bool 8 bits, of one lane; got ";
  t.dtype = {kDLFloat, 8, 1};
  CHECK(refusal(exporter) == expected + "float 8 bits");
  t.dtype = {kDLOpaqueHandle, 64, 1};
  CHECK(refusal(exporter) == expected + "opaque handle 64 bits");
  t.dtype = {kDLFloat, 32, 4};
  CHECK(refusal(exporter) == expected + "float 32 bits x 4 lanes");
  t.dtype = {17, 4, 1};
  CHECK(refusal(exporter) == expected + "type code 17 4 bits");
  t.dtype = {kDLFloat, 32, 1};
  t.device = {kDLCUDA, 1};
  CHECK(refusal(exporter) == "from_dlpack: expected memory that the host can read, got that of CUDA device 1; copy it to the host first");
  t.device = {kDLCPU, 0};
  t.ndim = 9;
  CHECK(refusal(exporter) == "from_dlpack: expected a shape of up to 8 dimensions, got 9");
  t.ndim = 2;
  exporter.shape = {-1, 3};
  CHECK(refusal(exporter) == "shape (-1,3): expected sizes of 0 or more, got -1");
  exporter.shape = {2, 3};
  t.byte_offset = 2;
  CHECK(refusal(exporter) ==
        "from_dlpack: expected f32 elements aligned to 4 bytes, got byte_offset 2 in memory that makes them misaligned");
  t.byte_offset = 0;
  t.data = nullptr;
  CHECK(refusal(exporter) == "from_dlpack: expected memory for (2,3), got a null pointer");
  CHECK_ERROR("from_dlpack: expected a DLManagedTensor, got null", from_dlpack(static_cast<DLManagedTensor*>(nullptr)));
}

TEST_CASE("dlpack: strides beyond the address range are rejected") {
  Exporter exporter;
  exporter.strides = {std::int64_t{1} << 62, 1};
  CHECK(refusal(exporter) == "from_dlpack: expected strides that 64 bits can address, got others for (2,3)");
  exporter.strides = {std::numeric_limits<std::int64_t>::min(), 1};
  CHECK(refusal(exporter) == "from_dlpack: expected strides that 64 bits can address, got others for (2,3)");
  CHECK(exporter.deleted == 0);
}

TEST_CASE("dlpack: an export keeps this library's memory until the receiver releases it") {
  auto owner = std::make_shared<std::vector<float>>(6, 1.0f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  DLManagedTensor* managed = to_dlpack(Tensor::borrow(owner->data(), DType::f32, {2, 3}, owner).transpose(0, 1));
  CHECK(managed->dl_tensor.data == owner->data());
  CHECK(managed->dl_tensor.device.device_type == kDLCPU);
  CHECK(managed->dl_tensor.ndim == 2);
  CHECK(managed->dl_tensor.shape[0] == 3);
  CHECK(managed->dl_tensor.strides[0] == 1);
  CHECK(managed->dl_tensor.strides[1] == 3);
  owner.reset();
  CHECK_FALSE(watch.expired());
  managed->deleter(managed);
  CHECK(watch.expired());
}

TEST_CASE("dlpack: a round trip returns the same memory for every dtype") {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128, DType::i8, DType::i16, DType::i32,
                            DType::i64, DType::u8, DType::u16, DType::u32, DType::u64, DType::boolean}) {
    const Tensor t = Tensor::zeros(dtype, {4, 2});
    const Tensor back = from_dlpack(to_dlpack(t.flip(0)));
    CHECK(back.dtype() == dtype);
    CHECK(back.flip(0).address() == t.address());
    CHECK(back.storage() != t.storage());
  }
}

TEST_CASE("dlpack: memory of a device that DLPack does not know is not exported") {
  const auto device = std::make_shared<FarMemory>();
  CHECK_ERROR(
      "to_dlpack: expected memory that the host can read, or that of a device whose backend says where it is in DLPack, got device "
      "memory i32(2); to_host() copies it",
      to_dlpack(far_copy(iota({2}), device)));
  CHECK_ERROR("to_dlpack: got an undefined tensor", to_dlpack(Tensor()));
}

TEST_CASE("dlpack: memory of a device that DLPack knows is exported with its place") {
  const auto device = std::make_shared<FarMemory>();
  device->place = DlpackDevice{kDLCUDA, 3};
  const Tensor t = far_copy(iota({2}), device);
  DLManagedTensor* managed = to_dlpack(t);
  CHECK(managed->dl_tensor.device.device_type == kDLCUDA);
  CHECK(managed->dl_tensor.device.device_id == 3);
  CHECK(managed->dl_tensor.data == t.raw());
  managed->deleter(managed);
}

TEST_CASE("dlpack: the versioned form carries its version and whether the memory may be written to") {
  for (const bool read_only : {false, true}) {
    DLManagedTensorVersioned* managed = to_dlpack_versioned(iota({2}), read_only);
    CHECK(managed->version.major == 1);
    CHECK(managed->flags == (read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0));
    const ImportedTensor back = from_dlpack(managed);
    CHECK(back.read_only == read_only);
    CHECK(back.tensor.to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 1});
  }
}

TEST_CASE("dlpack: another major version is refused and stays with the caller") {
  DLManagedTensorVersioned* managed = to_dlpack_versioned(iota({2}));
  managed->version = {2, 5};
  CHECK_ERROR("from_dlpack: expected DLPack 1.x, got 2.5; ask the exporter for max_version (1, 0)", from_dlpack(managed));
  managed->deleter(managed);
}
