// SPDX-License-Identifier: Apache-2.0
// DLPack in the C API.
#include <memory>

#include <tenon/dlpack.h>

#include "c/object.h"

using namespace tenon;
using namespace tenon::c;

namespace {

/// A new object for an import, made before the exporter's tensor changes hands: later nothing fails.
template <class Import>
TenonError* import_tensor(const char* function, TenonTensor** out_tensor, const Import& import) {
  return guard(function, [&] {
    required(out_tensor, "out_tensor");
    auto object = std::make_unique<TenonTensor>(Tensor());
    import(*object);
    *out_tensor = object.release();
  });
}

}  // namespace

TenonError* tenon_tensor_from_dlpack(struct DLManagedTensor* managed, const TenonDevice* device, TenonTensor** out_tensor) {
  return import_tensor(__func__, out_tensor, [&](TenonTensor& object) {
    const std::optional<Device> on = optional_device(device);
    object.value = on ? from_dlpack(managed, *on) : from_dlpack(managed);
  });
}

TenonError* tenon_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned* managed, const TenonDevice* device,
                                               TenonTensor** out_tensor) {
  return import_tensor(__func__, out_tensor, [&](TenonTensor& object) {
    const std::optional<Device> on = optional_device(device);
    ImportedTensor imported = on ? from_dlpack(managed, *on) : from_dlpack(managed);
    object.value = std::move(imported.tensor);
    object.read_only = imported.read_only;
  });
}

TenonError* tenon_tensor_to_dlpack(const TenonTensor* tensor, struct DLManagedTensor** out_managed) {
  return guard(__func__, [&] {
    required(out_managed, "out_managed");
    const TenonTensor& object = get(tensor, "tensor");
    if (object.read_only) {
      throw BadArgument(
          "tensor: expected one that may be written to, since DLPack before 1.0 cannot say that it is read-only; use "
          "tenon_tensor_to_dlpack_versioned");
    }
    *out_managed = to_dlpack(object.value);
  });
}

TenonError* tenon_tensor_to_dlpack_versioned(const TenonTensor* tensor, struct DLManagedTensorVersioned** out_managed) {
  return guard(__func__, [&] {
    required(out_managed, "out_managed");
    const TenonTensor& object = get(tensor, "tensor");
    *out_managed = to_dlpack_versioned(object.value, object.read_only);
  });
}

TenonError* tenon_tensor_dlpack_device(const TenonTensor* tensor, int32_t* out_type, int32_t* out_id) {
  return guard(__func__, [&] {
    required(out_type, "out_type");
    required(out_id, "out_id");
    const DlpackDevice place = dlpack_device_of(get(tensor, "tensor").value);
    *out_type = place.type;
    *out_id = place.id;
  });
}
