// SPDX-License-Identifier: Apache-2.0
// The C API: tensors and DLPack.
#include "capi_testing.h"

#include <cmath>
#include <cstring>

#include "core/dlpack_versioned.h"
#include "dlpack_exporter.h"

using namespace tenon::test;

TEST_CASE("C API: tensors are created, described and read") {
  const NoLeaks none;
  Owned<TenonTensor> t;
  const std::int64_t shape[] = {2, 3};
  CHECK_OK(tenon_tensor_full(nullptr, TENON_DTYPE_I32, 2, shape, 7, t.out()));
  const TenonTensorInfo info = info_of(t);
  CHECK(info.dtype == TENON_DTYPE_I32);
  CHECK(info.rank == 2);
  CHECK(info.flags == 0);
  CHECK(info.is_dense == 1);
  CHECK(info.is_on_host == 1);
  CHECK(info.address % 64 == 0);
  CHECK(info.element_count == 6);
  CHECK(info.size_bytes == 24);
  CHECK(info.shape[1] == 3);
  CHECK(info.strides[0] == 3);
  CHECK(values_of<std::int32_t>(t) == std::vector<std::int32_t>(6, 7));
  CHECK_OK(tenon_tensor_empty(nullptr, TENON_DTYPE_F64, 0, nullptr, t.out()));
  CHECK(info_of(t).element_count == 1);
  CHECK_OK(tenon_tensor_fill(t, 2.5));
  CHECK(values_of<double>(t) == std::vector<double>{2.5});
  const std::int64_t none_there[] = {0, 3};
  CHECK_OK(tenon_tensor_copy_of(nullptr, TENON_DTYPE_F32, 2, none_there, nullptr, t.out()));
  CHECK_OK(tenon_tensor_read(t, nullptr, 0));
}

TEST_CASE("C API: an info struct of an older caller gets the fields that it has") {
  const Owned<TenonTensor> t = make_tensor({1, 2}, {2});
  TenonTensorInfo info{};
  info.rank = 99;
  info.struct_size = offsetof(TenonTensorInfo, rank);
  CHECK_OK(tenon_tensor_info(t, &info));
  CHECK(info.dtype == TENON_DTYPE_F32);
  CHECK(info.rank == 99);
  CHECK(info.struct_size == offsetof(TenonTensorInfo, rank));
}

TEST_CASE("C API: wrong shapes, dtypes, strides and sizes are errors") {
  const NoLeaks none;
  TenonTensor* t = nullptr;
  const std::int64_t shape[9] = {2, 2, 1, 1, 1, 1, 1, 1, 1};
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_empty: rank: expected at most 8 dimensions, got 9",
              tenon_tensor_empty(nullptr, TENON_DTYPE_F32, 9, shape, &t));
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_empty: shape: expected an address, got NULL",
              tenon_tensor_empty(nullptr, TENON_DTYPE_F32, 1, nullptr, &t));
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_empty: dtype: expected a dtype from TENON_DTYPE_F16 to TENON_DTYPE_BOOL, got 0",
              tenon_tensor_empty(nullptr, TENON_DTYPE_NONE, 1, shape, &t));
  CHECK_FAILS_WITH("got 24", tenon_tensor_empty(nullptr, TENON_DTYPE_I2, 1, shape, &t));
  const std::int64_t negative[] = {-1};
  CHECK_FAILS("INVALID_ARGUMENT: shape (-1): expected sizes of 0 or more, got -1",
              tenon_tensor_empty(nullptr, TENON_DTYPE_F32, 1, negative, &t));
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_copy_of: expected memory for (2,2), got a null pointer",
              tenon_tensor_copy_of(nullptr, TENON_DTYPE_F32, 2, shape, nullptr, &t));
  alignas(8) float elements[4] = {1, 2, 3, 4};
  const std::int64_t far[] = {std::int64_t{1} << 62, 1};
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_copy_of: expected strides that 64 bits can address, got others for (2,2)",
              tenon_tensor_copy_of(elements, TENON_DTYPE_F32, 2, shape, far, &t));
  CHECK_FAILS_WITH("elements aligned to 4 bytes",
                   tenon_tensor_copy_of(reinterpret_cast<const char*>(elements) + 1, TENON_DTYPE_F32, 1, shape, nullptr, &t));
  CHECK_FAILS_WITH("7.5", tenon_tensor_full(nullptr, TENON_DTYPE_I32, 1, shape, 7.5, &t));
  CHECK(t == nullptr);
  const Owned<TenonTensor> four = make_tensor({1, 2, 3, 4}, {4});
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_read: size_bytes: expected 16 for f32(4), got 12", tenon_tensor_read(four, elements, 12));
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_read: out_data: expected an address, got NULL", tenon_tensor_read(four, nullptr, 16));
  const Owned<TenonTensor> two = make_tensor({1, 2}, {2});
  CHECK_FAILS("INVALID_ARGUMENT: Tensor::copy_from: expected f32(4), got f32(2)", tenon_tensor_assign(four, two));
}

TEST_CASE("C API: borrowed memory is used in place and released with the last view of it") {
  static float elements[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  const std::int64_t shape[] = {3, 2}, strides[] = {1, 3};
  Owned<TenonTensor> view;
  {
    Owned<TenonTensor> t;
    CHECK_OK(tenon_tensor_borrow(elements, TENON_DTYPE_F32, 2, shape, strides, 0, release, &released, t.out()));
    CHECK(values_of(t) == std::vector<float>{0, 3, 1, 4, 2, 5});
    CHECK_OK(tenon_tensor_select(t, 1, 1, view.out()));
    void* data = nullptr;
    CHECK_OK(tenon_tensor_mutable_data(t, &data));
    CHECK(data == elements);
  }
  CHECK(released == 0);
  CHECK(values_of(view) == std::vector<float>{3, 4, 5});
  view = Owned<TenonTensor>();
  CHECK(released == 1);
  TenonTensor* refused = nullptr;
  CHECK_FAILS_WITH("flags: expected TENON_TENSOR_READ_ONLY or 0, got 6",
                   tenon_tensor_borrow(elements, TENON_DTYPE_F32, 2, shape, strides, 6, release, &released, &refused));
  CHECK_FAILS_WITH("dtype", tenon_tensor_borrow(elements, 77, 2, shape, strides, 0, release, &released, &refused));
  CHECK(released == 1);
}

TEST_CASE("C API: a read-only tensor and its views are not written to, a copy may be") {
  const NoLeaks none;
  float elements[4] = {1, 2, 3, 4};
  const std::int64_t shape[] = {4}, square[] = {2, 2};
  Owned<TenonTensor> t, view, copy;
  CHECK_OK(tenon_tensor_borrow(elements, TENON_DTYPE_F32, 1, shape, nullptr, TENON_TENSOR_READ_ONLY, nullptr, nullptr, t.out()));
  CHECK(info_of(t).flags == TENON_TENSOR_READ_ONLY);
  CHECK_OK(tenon_tensor_reshape(t, 2, square, view.out()));
  CHECK(info_of(view).flags == TENON_TENSOR_READ_ONLY);
  const std::string refusal = "tensor: expected a tensor that may be written to, got a read-only one";
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_fill: " + refusal, tenon_tensor_fill(view, 1));
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_assign: " + refusal, tenon_tensor_assign(t, t));
  void* data = nullptr;
  CHECK_FAILS("INVALID_ARGUMENT: tenon_tensor_mutable_data: " + refusal, tenon_tensor_mutable_data(t, &data));
  const void* readable = nullptr;
  CHECK_OK(tenon_tensor_data(t, &readable));
  CHECK(readable == elements);
  CHECK_OK(tenon_tensor_to_dtype(t, TENON_DTYPE_F64, copy.out()));
  CHECK(info_of(copy).flags == 0);
  CHECK_OK(tenon_tensor_fill(copy, 9));
  CHECK(elements[0] == 1);
  DLManagedTensor* managed = nullptr;
  CHECK_FAILS_WITH("use tenon_tensor_to_dlpack_versioned", tenon_tensor_to_dlpack(t, &managed));
}

TEST_CASE("C API: views of a tensor") {
  const Owned<TenonTensor> t = make_tensor({0, 1, 2, 3, 4, 5}, {2, 3});
  Owned<TenonTensor> v;
  CHECK_OK(tenon_tensor_slice(t, -1, 2, -1, -2, v.out()));
  CHECK(values_of(v) == std::vector<float>{2, 0, 5, 3});
  const std::int64_t order[] = {1, 0};
  CHECK_OK(tenon_tensor_permute(t, 2, order, v.out()));
  CHECK(values_of(v) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(info_of(v).is_dense == 0);
  Owned<TenonTensor> dense, refused;
  CHECK_OK(tenon_tensor_contiguous(v, dense.out()));
  CHECK(info_of(dense).is_dense == 1);
  const std::int64_t six[] = {6}, wide[] = {2, 2, 3};
  CHECK_FAILS_WITH("contiguous", tenon_tensor_reshape(v, 1, six, refused.out()));
  CHECK_OK(tenon_tensor_expand(t, 3, wide, v.out()));
  CHECK(shape_of(v) == std::vector<std::int64_t>{2, 2, 3});
  CHECK(info_of(v).strides[0] == 0);
  CHECK_FAILS_WITH("repeats", tenon_tensor_fill(v, 1));
  CHECK_OK(tenon_tensor_unsqueeze(t, -1, v.out()));
  CHECK(shape_of(v) == std::vector<std::int64_t>{2, 3, 1});
  CHECK_FAILS_WITH("axis", tenon_tensor_select(t, 5, 0, v.out()));
  char* text = nullptr;
  CHECK_OK(tenon_tensor_text(t, 3, &text));
  CHECK(taken(text) == "[[0, 1, 2],\n [3, 4, 5]]");
  std::uint32_t same = 7;
  CHECK_OK(tenon_tensor_equal(t, t, &same));
  CHECK(same == 1);
  CHECK_OK(tenon_tensor_equal(t, dense, &same));
  CHECK(same == 0);
}

TEST_CASE("C API: the places of elements that are not 0 are rows of indices, in row-major order") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonTensor> host = make_tensor({0, 3, 0, -1, 0, 5}, {2, 3}), scalar = make_tensor({2}, {});
  const auto places_of = [](const TenonTensor* tensor) {
    Owned<TenonTensor> places;
    REQUIRE_OK(tenon_tensor_nonzero(tensor, places.out()));
    CHECK(info_of(places).dtype == TENON_DTYPE_I64);
    std::vector<std::int64_t> values(info_of(places).element_count);
    REQUIRE_OK(tenon_tensor_read(places, values.data(), values.size() * sizeof(std::int64_t)));
    return std::pair(shape_of(places), values);
  };
  CHECK(places_of(host) == std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>{{2, 3}, {0, 1, 1, 1, 0, 2}});
  Owned<TenonTensor> other;
  const std::int64_t swapped[] = {1, 0};
  REQUIRE_OK(tenon_tensor_permute(host, 2, swapped, other.out()));
  CHECK(places_of(other) == std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>{{2, 3}, {0, 1, 2, 1, 0, 1}});
  CHECK(places_of(scalar).first == std::vector<std::int64_t>{0, 1});
  Owned<TenonDevice> device;
  REQUIRE_OK(tenon_device_open(context, "reference:0", device.out()));
  REQUIRE_OK(tenon_tensor_to_device(host, device, other.out()));
  CHECK(places_of(other) == places_of(host));
  REQUIRE_OK(tenon_tensor_fill(other, 0));
  CHECK(places_of(other).first == std::vector<std::int64_t>{2, 0});
  CHECK_FAILS_WITH("tensor: expected", tenon_tensor_nonzero(nullptr, other.out()));
}

TEST_CASE("C API: tensors move between devices") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Owned<TenonDevice> reference, openblas, on;
  CHECK_OK(tenon_device_open(context, "reference:0", reference.out()));
  CHECK_OK(tenon_device_open(context, "openblas:0", openblas.out()));
  const Owned<TenonTensor> host = make_tensor({1, 2, 3}, {3});
  Owned<TenonTensor> a, b, back;
  CHECK_OK(tenon_tensor_device(host, on.out()));
  CHECK(on == nullptr);
  CHECK_OK(tenon_tensor_to_device(host, reference, a.out()));
  CHECK_OK(tenon_tensor_device(a, on.out()));
  CHECK(std::string(tenon_device_name(on)) == "reference:0");
  CHECK_OK(tenon_tensor_to_device(a, openblas, b.out()));
  CHECK_OK(tenon_tensor_fill(a, 0));
  CHECK_OK(tenon_tensor_to_device(b, nullptr, back.out()));
  CHECK(values_of(back) == std::vector<float>{1, 2, 3});
  CHECK_OK(tenon_tensor_assign(a, b));
  CHECK(values_of(a) == std::vector<float>{1, 2, 3});
  const std::int64_t huge[] = {std::int64_t{1} << 45};
  TenonTensor* t = nullptr;
  CHECK_FAILS_WITH("OUT_OF_MEMORY: ", tenon_tensor_empty(reference, TENON_DTYPE_F64, 1, huge, &t));
}

namespace {

/// The versioned form of Exporter.
struct VersionedExporter {
  Exporter plain;
  int deleted = 0;
  DLManagedTensorVersioned managed{};
  VersionedExporter() {
    managed.version = {1, 2};
    managed.dl_tensor = plain.managed.dl_tensor;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<VersionedExporter*>(self->manager_ctx)->deleted; };
  }
};

}  // namespace

TEST_CASE("C API: DLPack in and out shares the memory, in both forms") {
  const NoLeaks none;
  Exporter exporter;
  {
    Owned<TenonTensor> t;
    CHECK_OK(tenon_tensor_from_dlpack(&exporter.managed, nullptr, t.out()));
    CHECK(info_of(t).address == reinterpret_cast<std::uintptr_t>(exporter.elements.data()));
    DLManagedTensorVersioned* out = nullptr;
    CHECK_OK(tenon_tensor_to_dlpack_versioned(t, &out));
    CHECK(out->version.major == 1);
    CHECK(out->flags == 0);
    CHECK(out->dl_tensor.data == exporter.elements.data());
    t = Owned<TenonTensor>();
    CHECK(exporter.deleted == 0);
    out->deleter(out);
    CHECK(exporter.deleted == 1);
  }
  VersionedExporter versioned;
  versioned.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Owned<TenonTensor> t;
  CHECK_OK(tenon_tensor_from_dlpack_versioned(&versioned.managed, nullptr, t.out()));
  CHECK(info_of(t).flags == TENON_TENSOR_READ_ONLY);
  CHECK_FAILS_WITH("read-only", tenon_tensor_fill(t, 0));
  DLManagedTensorVersioned* out = nullptr;
  CHECK_OK(tenon_tensor_to_dlpack_versioned(t, &out));
  CHECK(out->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  out->deleter(out);
  std::int32_t type = 0, id = -1;
  CHECK_OK(tenon_tensor_dlpack_device(t, &type, &id));
  CHECK(type == kDLCPU);
  CHECK(id == 0);
  t = Owned<TenonTensor>();
  CHECK(versioned.deleted == 1);
}

TEST_CASE("C API: refused DLPack tensors stay with the caller") {
  const NoLeaks none;
  TenonTensor* t = nullptr;
  VersionedExporter versioned;
  versioned.managed.version = {2, 0};
  CHECK_FAILS("INCOMPATIBLE: from_dlpack: expected DLPack 1.x, got 2.0; ask the exporter for max_version (1, 0)",
              tenon_tensor_from_dlpack_versioned(&versioned.managed, nullptr, &t));
  versioned.managed.version = {1, 0};
  versioned.managed.dl_tensor.device = {kDLCUDA, 1};
  CHECK_FAILS_WITH("UNSUPPORTED: from_dlpack: expected memory that the host can read, got that of CUDA device 1",
                   tenon_tensor_from_dlpack_versioned(&versioned.managed, nullptr, &t));
  CHECK_FAILS_WITH("expected a DLManagedTensor, got null", tenon_tensor_from_dlpack(nullptr, nullptr, &t));
  CHECK_FAILS_WITH("expected a DLManagedTensorVersioned, got null", tenon_tensor_from_dlpack_versioned(nullptr, nullptr, &t));
  CHECK(versioned.deleted == 0);
  CHECK(t == nullptr);
}

TEST_CASE("C API: a DLPack tensor as memory of a device is used in place where the device can, a read-only one too") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Owned<TenonDevice> device;
  CHECK_OK(tenon_device_open(context, "reference:0", device.out()));
  VersionedExporter versioned;
  versioned.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Owned<TenonTensor> t;
  CHECK_OK(tenon_tensor_from_dlpack_versioned(&versioned.managed, device, t.out()));
  CHECK(values_of(t) == std::vector<float>{0, 1, 2, 3, 4, 5});
  const bool in_place = info_of(t).address == reinterpret_cast<std::uintptr_t>(versioned.plain.elements.data());
  CHECK(info_of(t).flags == (in_place ? std::uint32_t{TENON_TENSOR_READ_ONLY} : 0U));
  CHECK(versioned.deleted == (in_place ? 0 : 1));
  t = Owned<TenonTensor>();
  CHECK(versioned.deleted == 1);
}
