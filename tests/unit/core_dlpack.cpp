// SPDX-License-Identifier: Apache-2.0
// DLPack import and export: no copies, and every deleter is called once.
#include <doctest/doctest.h>

#include <dlpack/dlpack.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <tenon/dlpack.h>

#include "far_memory.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Another library's tensor of 2 x 3 floats that counts the calls of its deleter.
struct Foreign {
  std::array<float, 6> elements{0, 1, 2, 3, 4, 5};
  std::array<std::int64_t, 2> shape{2, 3};
  std::array<std::int64_t, 2> strides{3, 1};
  int deleted = 0;
  DLManagedTensor managed{};

  Foreign() {
    managed.dl_tensor = {elements.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }
};

std::string refusal(Foreign& foreign) {
  try {
    (void)from_dlpack(&foreign.managed);
  } catch (const Error& error) {
    CHECK(foreign.deleted == 0);  // the caller still owns it
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("dlpack: an import keeps the exporter's memory until its last view is destroyed") {
  Foreign foreign;
  {
    Tensor view;
    {
      const Tensor t = from_dlpack(&foreign.managed);
      CHECK(t.str() == "f32(2,3)");
      CHECK(t.data<float>() == foreign.elements.data());
      view = t.select(0, 1);
    }
    foreign.elements[4] = 40;
    CHECK(view.to_vector<float>() == std::vector<float>{3, 40, 5});
    CHECK(foreign.deleted == 0);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("dlpack: strides may be absent, transposed, negative or zero") {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  CHECK(from_dlpack(&foreign.managed).is_dense());
  foreign.managed.dl_tensor.strides = foreign.strides.data();
  foreign.shape = {3, 2};
  foreign.strides = {1, 3};
  CHECK(from_dlpack(&foreign.managed).to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
  foreign.strides = {-1, 0};
  foreign.managed.dl_tensor.byte_offset = 2 * sizeof(float);
  CHECK(from_dlpack(&foreign.managed).to_vector<float>() == std::vector<float>{2, 2, 1, 1, 0, 0});
  CHECK(foreign.deleted == 3);
}

TEST_CASE("dlpack: byte_offset moves the first element") {
  Foreign foreign;
  foreign.shape = {1, 3};
  foreign.managed.dl_tensor.byte_offset = 3 * sizeof(float);
  CHECK(from_dlpack(&foreign.managed).to_vector<float>() == std::vector<float>{3, 4, 5});
}

TEST_CASE("dlpack: a scalar, an empty tensor, an exporter without a deleter") {
  Foreign foreign;
  foreign.managed.dl_tensor.ndim = 0;
  foreign.managed.dl_tensor.shape = nullptr;
  foreign.managed.dl_tensor.strides = nullptr;
  CHECK(from_dlpack(&foreign.managed).item() == 0.0);
  foreign.managed.dl_tensor.ndim = 2;
  foreign.managed.dl_tensor.shape = foreign.shape.data();
  foreign.shape = {0, 3};
  foreign.managed.dl_tensor.data = nullptr;
  CHECK(from_dlpack(&foreign.managed).count() == 0);
  CHECK(foreign.deleted == 2);
  foreign.managed.deleter = nullptr;
  CHECK(from_dlpack(&foreign.managed).shape() == Shape{0, 3});
}

TEST_CASE("dlpack: a rejected tensor is described and stays with the caller") {
  Foreign foreign;
  DLTensor& t = foreign.managed.dl_tensor;
  const std::string expected =
      "from_dlpack: expected float 16 to 64, bfloat 16, int and uint 8 to 64, complex 64 or 128, or bool 8 bits, of one lane; got ";
  t.dtype = {kDLFloat, 8, 1};
  CHECK(refusal(foreign) == expected + "float 8 bits");
  t.dtype = {kDLOpaqueHandle, 64, 1};
  CHECK(refusal(foreign) == expected + "opaque handle 64 bits");
  t.dtype = {kDLFloat, 32, 4};
  CHECK(refusal(foreign) == expected + "float 32 bits x 4 lanes");
  t.dtype = {17, 4, 1};
  CHECK(refusal(foreign) == expected + "type code 17 4 bits");
  t.dtype = {kDLFloat, 32, 1};
  t.device = {kDLCUDA, 1};
  CHECK(refusal(foreign) == "from_dlpack: expected memory that the host can read, got that of CUDA device 1; copy it to the host first");
  t.device = {kDLCPU, 0};
  t.ndim = 9;
  CHECK(refusal(foreign) == "from_dlpack: expected a shape of up to 8 dimensions, got 9");
  t.ndim = 2;
  foreign.shape = {-1, 3};
  CHECK(refusal(foreign) == "shape (-1,3): expected sizes of 0 or more, got -1");
  foreign.shape = {2, 3};
  t.byte_offset = 2;
  CHECK(refusal(foreign) ==
        "from_dlpack: expected f32 elements aligned to 4 bytes, got byte_offset 2 in memory that makes them misaligned");
  t.byte_offset = 0;
  t.data = nullptr;
  CHECK(refusal(foreign) == "from_dlpack: expected memory for (2,3), got a null pointer");
  CHECK_ERROR("from_dlpack: expected a DLManagedTensor, got null", from_dlpack(nullptr));
}

TEST_CASE("dlpack: strides beyond the address range are rejected") {
  Foreign foreign;
  foreign.strides = {std::int64_t{1} << 62, 1};
  CHECK(refusal(foreign) == "from_dlpack: expected strides that 64 bits can address, got others for (2,3)");
  foreign.strides = {std::numeric_limits<std::int64_t>::min(), 1};
  CHECK(refusal(foreign) == "from_dlpack: expected strides that 64 bits can address, got others for (2,3)");
  CHECK(foreign.deleted == 0);
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

TEST_CASE("dlpack: device memory is not exported") {
  const auto device = std::make_shared<FarMemory>();
  CHECK_ERROR("to_dlpack: expected memory that the host can read, got device memory i32(2); to_host() copies it",
              to_dlpack(far_copy(iota({2}), device)));
  CHECK_ERROR("to_dlpack: got an undefined tensor", to_dlpack(Tensor()));
}
