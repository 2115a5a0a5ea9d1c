/* SPDX-License-Identifier: Apache-2.0 */
/* losing_backend.c - the template backend with a simulated GPU that is lost by its first computation. */
#include <tenon/backend.h>

#define tenon_backend_query template_query
#undef TENON_EXPORT
#define TENON_EXPORT static
#include "../../plugins/template/template.c"
#undef tenon_backend_query

static int lost = 0;

static tenon_status losing_execute(tenon_plan* plan, const tenon_bindings* bindings, uint64_t workspace, tenon_stream* stream,
                                   tenon_error* error) {
  lost = 1;
  return tenon_fail(error, TENON_DEVICE_LOST, "losing:0 has fallen off the bus");
}

static tenon_status losing_copy(tenon_device* device, const tenon_copy* what, tenon_stream* stream, tenon_error* error) {
  if (lost) return tenon_fail(error, TENON_DEVICE_LOST, "losing:0 has fallen off the bus");
  return copy(device, what, stream, error);
}

static tenon_status losing_device_info(tenon_backend* backend, uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  const tenon_status status = device_info(backend, index, out_info, error);
  if (status != TENON_OK) return status;
  out_info->kind = TENON_DEVICE_GPU;
  out_info->flags &= ~(uint32_t)TENON_DEVICE_HOST_ADDRESSABLE; /* tensors are copied in and out */
  return TENON_OK;
}

static tenon_backend_table losing_table;

static tenon_status losing_create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                                  tenon_error* error) {
  const tenon_status status = create(host, out_backend, out_table, error);
  if (status != TENON_OK) return status;
  losing_table = table;
  losing_table.device_info = losing_device_info;
  losing_table.plan_execute = losing_execute;
  losing_table.copy = losing_copy;
  *out_table = &losing_table;
  return TENON_OK;
}

__attribute__((visibility("default"))) tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  const tenon_status status = template_query(host, out_info);
  out_info->name = "losing";
  out_info->create = losing_create;
  return status;
}
