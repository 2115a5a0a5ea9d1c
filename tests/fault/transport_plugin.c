/* SPDX-License-Identifier: Apache-2.0 */
/* A transport of one process with the fault that its build names (FAULT), for transport.cpp. */
#include <string.h>
#include <tenon/transport.h>

struct tenon_transport {
  int unused;
};
static tenon_transport only;

static void TENON_CALL destroy(tenon_transport* transport) {
  (void)transport;
}

static tenon_status TENON_CALL group(tenon_transport* transport, tenon_transport_group* out_group, tenon_error* error) {
  (void)transport, (void)error;
  out_group->rank = 0;
  out_group->size = 1;
  return TENON_OK;
}

static tenon_status TENON_CALL all_reduce(tenon_transport* transport, void* data, uint64_t count, tenon_dtype dtype, uint32_t operation,
                                          uint64_t* out_collective, tenon_error* error) {
  (void)transport, (void)data, (void)count, (void)dtype, (void)operation, (void)error;
  *out_collective = 1;
  return TENON_OK;
}

static tenon_status TENON_CALL broadcast(tenon_transport* transport, void* data, uint64_t size_bytes, uint32_t root,
                                         uint64_t* out_collective, tenon_error* error) {
  (void)transport, (void)data, (void)size_bytes, (void)root, (void)error;
  *out_collective = 1;
  return TENON_OK;
}

static tenon_status TENON_CALL all_gather(tenon_transport* transport, const void* data, uint64_t size_bytes, void* out_data,
                                          uint64_t* out_collective, tenon_error* error) {
  (void)transport, (void)error;
  memcpy(out_data, data, (size_t)size_bytes);
  *out_collective = 1;
  return TENON_OK;
}

static tenon_status TENON_CALL wait_for(tenon_transport* transport, uint64_t collective, tenon_error* error) {
  (void)transport, (void)collective, (void)error;
  return TENON_OK;
}

static void TENON_CALL abort_all(tenon_transport* transport, const char* reason) {
  (void)transport, (void)reason;
}

/* The table of a later minor: it has a slot more. */
static const struct {
  tenon_transport_table table;
  void(TENON_CALL* later)(tenon_transport* transport);
} tables = {{sizeof tables, 0, destroy, group, all_reduce, broadcast, all_gather, wait_for, abort_all}, destroy};

static tenon_status TENON_CALL create(const tenon_transport_request* request, tenon_transport** out_transport,
                                      const tenon_transport_table** out_table, tenon_error* error) {
  (void)request, (void)error;
  *out_transport = &only;
  *out_table = &tables.table;
  return TENON_OK;
}

tenon_status TENON_CALL tenon_transport_query(const tenon_host_info* host, tenon_transport_info* out_info) {
  (void)host;
  out_info->abi_major = TENON_TRANSPORT_ABI_MAJOR;
  out_info->abi_minor_lowest = TENON_TRANSPORT_ABI_MINOR_LOWEST;
  out_info->abi_minor_highest = TENON_TRANSPORT_ABI_MINOR;
  out_info->name = FAULT;
  out_info->version = "1";
  out_info->create = create;
  if (strcmp(FAULT, "later_minor") == 0) out_info->abi_minor_highest += 5;
  if (strcmp(FAULT, "needs_newer") == 0) out_info->abi_minor_lowest += 7, out_info->abi_minor_highest += 8;
  if (strcmp(FAULT, "other_major") == 0) out_info->abi_major += 1;
  if (strcmp(FAULT, "no_create") == 0) out_info->create = NULL;
  if (strcmp(FAULT, "bad_name") == 0) out_info->name = "Bad Name";
  return strcmp(FAULT, "query_fails") == 0 ? TENON_VENDOR_ERROR : TENON_OK;
}
