// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries on a device: in place if the device takes their memory, else copied once.
#include <dlpack/dlpack.h>

#include <array>
#include <cstdint>
#include <vector>

#include "dlpack_exporter.h"
#include "extra_device.h"
#include "testing.h"

namespace tenon::test {
namespace {

using Floats = std::vector<float>;

/// A device that no host pointer reaches, except by imports, which are counted and may be refused.
struct Importing : WrappedBackend<Importing> {
  static constexpr const char* name = "importing";
  static inline tenon_status answer = TENON_OK;
  static inline int imports = 0;

  static tenon_status import(tenon_device* device, const tenon_memory_import* request, tenon_memory_result* out_result,
                             tenon_error* error) {
    if (answer != TENON_OK) return answer;
    ++imports;
    return real->table().memory_import(device, request, out_result, error);
  }
  static void alter(tenon_backend_table& table) { table.memory_import = import; }
};

/// A context with the device importing:0.
struct WithImporting {
  WithImporting() {
    Importing::answer = TENON_OK;
    Importing::add_to(context);
    Importing::imports = 0;
  }
  const Context context{test_config()};
};

std::uint64_t address_of(const Exporter& exporter) {
  return reinterpret_cast<std::uintptr_t>(exporter.elements.data());
}

TEST_CASE_FIXTURE(WithImporting, "import: a device uses the memory of another library in place, until the last tensor is destroyed") {
  for (const char* const name : {"openblas:0", "reference:0", "importing:0"}) {
    CAPTURE(name);
    const Device device = context.device(name);
    Exporter exporter;
    Tensor row;
    {
      const Tensor x = from_dlpack(&exporter.managed, device);
      CHECK(x.str() == "f32(2,3)");
      CHECK(x.address() == address_of(exporter));
      CHECK((x.storage()->device == device.state()));
      exporter.elements[1] = 10;
      const std::uint64_t copies = context.profile().host_to_device.copies;
      CHECK(floats(context.apply(device, TENON_OP_Neg, {x})[0]) == Floats{-0.0F, -10, -2, -3, -4, -5});
      CHECK(context.profile().host_to_device.copies == copies);
      row = x.select(0, 1);
    }
    CHECK(exporter.deleted == 0);
    row.fill(7);
    CHECK(exporter.elements == std::array<float, 6>{0, 10, 2, 7, 7, 7});
    row = {};
    CHECK(exporter.deleted == 1);
  }
  CHECK(Importing::imports == 1);
}

TEST_CASE_FIXTURE(WithImporting, "import: what a device cannot use in place is copied, and the other library may free it at once") {
  const auto copied = [&](Exporter& exporter, const Device& device, const Floats& expected) {
    const Tensor x = from_dlpack(&exporter.managed, device);
    CHECK(exporter.deleted == 1);
    CHECK(x.is_dense());
    CHECK((x.storage()->device == device.state()));
    exporter.elements.fill(-1);
    CHECK(floats(x) == expected);
  };
  {
    Exporter transposed;
    transposed.shape = {3, 2};
    transposed.strides = {1, 3};
    copied(transposed, context.device("openblas:0"), {0, 3, 1, 4, 2, 5});
  }
  {
    Exporter empty;
    empty.shape = {0, 3};
    copied(empty, context.device("importing:0"), {});
  }
  {
    Importing::answer = TENON_UNSUPPORTED;
    Exporter refused;
    copied(refused, context.device("importing:0"), {0, 1, 2, 3, 4, 5});
  }
  Importing::answer = TENON_OK;
  DeviceInfo& info = context.state()->entries.back().info;
  info.alignment_bytes = info.operand_alignment_bytes = 64;
  Exporter misaligned;
  misaligned.shape = {1, 5};
  misaligned.managed.dl_tensor.byte_offset = sizeof(float);
  copied(misaligned, context.device("importing:0"), {1, 2, 3, 4, 5});
  CHECK(Importing::imports == 1);  // only then is it known where the memory is
}

TEST_CASE_FIXTURE(WithImporting, "import: after a failure the other library's tensor stays with the caller") {
  const Device device = context.device("importing:0");
  Importing::answer = TENON_DEVICE_LOST;
  Exporter exporter;
  CHECK_ERROR("device 'importing:0': 24 bytes of host memory: DEVICE_LOST", from_dlpack(&exporter.managed, device));
  exporter.managed.dl_tensor.device = {kDLCUDA, 0};
  CHECK_ERROR_CONTAINS("from_dlpack: expected memory that the host can read", from_dlpack(&exporter.managed, device));
  CHECK(exporter.deleted == 0);
}

TEST_CASE("import: a backend whose device uses imported memory is not replaced") {
  Context context(test_config());
  Exporter exporter;
  const Tensor x = from_dlpack(&exporter.managed, context.device("reference:0"));
  CHECK_ERROR_CONTAINS("'reference' is in use: device 'reference:0' is held by ", context.reload_backend("reference"));
}

}  // namespace
}  // namespace tenon::test
