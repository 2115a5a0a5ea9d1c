/* SPDX-License-Identifier: Apache-2.0 */
/* far.c - the reference backend as a device whose memory the host cannot address. An address that it returns faults if the host accesses
 * it, and a host pointer passed as an address faults here. FAR_OF: the file of the reference backend. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <tenon/backend.h>

/* No address of a process has this bit set. */
#define DISTANCE ((uint64_t)1 << 62)
static uint64_t away(uint64_t address) {
  return address == 0 ? 0 : address ^ DISTANCE;
}

static tenon_status (*near_create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*);
static const tenon_backend_table* near_table;
static const tenon_blas_table* near_blas;
static tenon_backend_table far_table;

static tenon_status far_device_info(tenon_backend* backend, uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  const tenon_status status = near_table->device_info(backend, index, out_info, error);
  if (status == TENON_OK) out_info->flags &= ~(uint32_t)(TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS);
  return status;
}
static tenon_status far_memory_allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                                        tenon_error* error) {
  const tenon_status status = near_table->memory_allocate(device, request, out_result, error);
  if (status == TENON_OK && request->kind == TENON_MEMORY_DEVICE) {
    out_result->address = away(out_result->address);
    out_result->host = NULL;
  }
  return status;
}
static tenon_status far_copy(tenon_device* device, const tenon_copy* copy, tenon_stream* stream, tenon_error* error) {
  tenon_copy here = *copy;
  if (here.direction != TENON_COPY_DEVICE_TO_HOST) here.destination = away(here.destination);
  if (here.direction != TENON_COPY_HOST_TO_DEVICE) here.source = away(here.source);
  here.direction = TENON_COPY_DEVICE_TO_DEVICE;
  return near_table->copy(device, &here, stream, error);
}
static tenon_status far_fill(tenon_device* device, uint64_t address, uint64_t size_bytes, uint8_t value, tenon_stream* stream,
                             tenon_error* error) {
  return near_table->fill(device, away(address), size_bytes, value, stream, error);
}

/* The record for the reference backend. Numbers stay in host memory. */
#define TENON_BLAS_ARGS(signature, fields)                                                                      \
  static tenon_blas_##signature##_args near_##signature##_args(const tenon_blas_##signature##_args* far_args) { \
    tenon_blas_##signature##_args args = *far_args;                                                             \
    fields return args;                                                                                         \
  }
#define TENON_FLAG(name)
#define TENON_SIZE(name)
#define TENON_IN(name) args.name = away(args.name);
#define TENON_OUT(name) args.name = away(args.name);
#define TENON_LIST(name) args.name = NULL; /* the drop-in BLAS has no batches */
#define TENON_SCALAR(name)
#define TENON_REAL_SCALAR(name)
#define TENON_NUMBERS(name)
#define TENON_REAL_NUMBER(name)
#define TENON_RESULT(name)
#define TENON_RESERVED
#include <tenon/blas_args.def>
#define TENON_BLAS(id, routine, level, signature, dtypes)                                                                              \
  static tenon_status slot_##routine(const tenon_blas_call* call, const tenon_blas_##signature##_args* far_args, tenon_error* error) { \
    const tenon_blas_##signature##_args args = near_##signature##_args(far_args);                                                      \
    return near_blas->routine(call, &args, error);                                                                                     \
  }
#include <tenon/blas.def>
#undef TENON_BLAS

static const tenon_blas_table far_blas = {
    sizeof(tenon_blas_table),
    0,
#define TENON_BLAS(id, routine, level, signature, dtypes) slot_##routine, TENON_DTYPES_##dtypes,
#include <tenon/blas.def>
#undef TENON_BLAS
};

static tenon_status far_create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                               tenon_error* error) {
  const tenon_status status = near_create(host, out_backend, &near_table, error);
  if (status != TENON_OK) return status;
  near_blas = near_table->blas;
  far_table = *near_table;
  far_table.device_info = far_device_info;
  far_table.memory_allocate = far_memory_allocate;
  far_table.copy = far_copy;
  far_table.fill = far_fill;
  far_table.blas = &far_blas;
  *out_table = &far_table;
  return TENON_OK;
}

__attribute__((visibility("default"))) tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  void* const library = dlopen(FAR_OF, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return TENON_INTERNAL;
  tenon_status (*near_query)(const tenon_host_info*, tenon_backend_info*);
  *(void**)&near_query = dlsym(library, "tenon_backend_query");
  const tenon_status status = near_query(host, out_info);
  near_create = out_info->create;
  out_info->name = "far";
  out_info->create = far_create;
  return status;
}
