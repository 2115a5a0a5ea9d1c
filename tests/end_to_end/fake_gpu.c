/* SPDX-License-Identifier: Apache-2.0 */
/* fake_gpu.c - the template backend with two simulated GPUs, to test reports about GPUs on machines without one. */
#include <tenon/backend.h>

#define tenon_backend_query template_query
#undef TENON_EXPORT
#define TENON_EXPORT static
#include "../../plugins/template/template.c"
#undef tenon_backend_query

static tenon_status fake_device_count(tenon_backend* backend, uint32_t* out_count, tenon_error* error) {
  *out_count = 2;
  return TENON_OK;
}

static tenon_status fake_device_info(tenon_backend* backend, uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  static const char* const names[] = {"Fake \"One\"", "Fake Two"};
  static const char* const identities[] = {"0000:01:00.0", "0000:02:00.0"};
  if (index > 1) return tenon_fail(error, TENON_DEVICE_NOT_FOUND, "fake_gpu:%u does not exist", index);
  tenon_device_info own = {.struct_size = sizeof own,
                           .kind = TENON_DEVICE_GPU,
                           .flags = TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS | TENON_DEVICE_SINGLE_NODE_PLANS,
                           .compute_major = 9,
                           .compute_minor = index,
                           .clock_khz = 1980000 + index,
                           .name = names[index],
                           .identity = identities[index],
                           .description = "CUDA 12.4, cuBLAS 12.4.5",
                           .memory_size_bytes = 150000000000u + index,
                           .memory_free_bytes = 140000000000u,
                           .alignment_bytes = ALIGNMENT,
                           .dtypes = TENON_DTYPE_BIT(TENON_DTYPE_F32)};
  tenon_answer_with(out_info, &own, sizeof own);
  return TENON_OK;
}

static tenon_status fake_device_open(tenon_backend* backend, uint32_t index, tenon_device** out_device, tenon_error* error) {
  if (index == 0) return device_open(backend, 0, out_device, error);
  return tenon_fail(error, TENON_DEVICE_LOST, "fake_gpu:%u has fallen off the bus", index);
}

static tenon_backend_table fake_table;

static tenon_status fake_create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                                tenon_error* error) {
  const tenon_status status = create(host, out_backend, out_table, error);
  if (status != TENON_OK) return status;
  fake_table = table;
  fake_table.device_count = fake_device_count;
  fake_table.device_info = fake_device_info;
  fake_table.device_open = fake_device_open;
  *out_table = &fake_table;
  return TENON_OK;
}

__attribute__((visibility("default"))) tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  const tenon_status status = template_query(host, out_info);
  out_info->name = "fake_gpu";
  out_info->create = fake_create;
  return status;
}
