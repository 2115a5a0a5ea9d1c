/* SPDX-License-Identifier: Apache-2.0 */
/* tenon/transport.h - the plugin ABI of transports: what connects the processes that train a model together.
 *
 * A transport is one shared library that exports tenon_transport_query. tenon/backend.h states the conventions of calls, structs, errors
 * and growth; they hold here too. Processes are numbered from 0, their ranks. Each makes the same calls in the same order.
 */
#ifndef TENON_TRANSPORT_H
#define TENON_TRANSPORT_H

#include <tenon/backend.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma pack(push, 8)

/* A version of its own, frozen since 1.0 under the rules of the ABI of backends. */
#define TENON_TRANSPORT_ABI_MAJOR 1u
#define TENON_TRANSPORT_ABI_MINOR 0u
#define TENON_TRANSPORT_ABI_MINOR_LOWEST 0u /* as TENON_ABI_MINOR_LOWEST */

typedef struct tenon_transport tenon_transport;

/* What a transport is created with. */
typedef struct tenon_transport_request {
  uint32_t struct_size;
  /* A process that shows no sign of life for so long is taken for dead: what the others wait for fails, with its number and host in the
   * text. Signs of life are the transport's own, so that a process may compute for as long as it likes. 0: no limit. */
  uint32_t timeout_ms;
  uint32_t needs;             /* bits that must be understood: else `create` returns TENON_UNSUPPORTED */
  uint32_t abi_minor_highest; /* that the core knows of this ABI */
} tenon_transport_request;

/* The processes, and this one's place among them. */
typedef struct tenon_transport_group {
  uint32_t struct_size;
  uint32_t rank; /* of this process, below size */
  uint32_t size; /* at least 1 */
  uint32_t reserved;
} tenon_transport_group;

/* Collectives run in the order in which they are begun, on memory of the host, which nobody else touches before they end. Several may be
 * under way. One thread at a time calls the slots of a transport, `abort` excepted.
 *
 * Errors   a failure of one rank, or of the connection to it, is reported by `wait` on every rank that can still be reached, with the
 *          number of the rank in the text where it is known. After it every call fails. */
typedef struct tenon_transport_table {
  uint32_t struct_size;
  uint32_t reserved;
  /* Waits for what has been begun, if no error has been reported, and ends the connection. */
  void(TENON_CALL* destroy)(tenon_transport* transport);
  tenon_status(TENON_CALL* group)(tenon_transport* transport, tenon_transport_group* out_group, tenon_error* error);
  /* Replaces `count` elements, aligned to their size, by their combination over all ranks, the same bits on each, and again in each run
   * with the same ranks. dtype: F32, F64, I32, I64 or U8. operation: TENON_REDUCE_SUM or TENON_REDUCE_MAX. Others are TENON_UNSUPPORTED
   * on every rank, before anything is sent. */
  tenon_status(TENON_CALL* all_reduce)(tenon_transport* transport, void* data, uint64_t count, tenon_dtype dtype, uint32_t operation,
                                       uint64_t* out_collective, tenon_error* error);
  /* Copies the bytes of `root` to all ranks. */
  tenon_status(TENON_CALL* broadcast)(tenon_transport* transport, void* data, uint64_t size_bytes, uint32_t root, uint64_t* out_collective,
                                      tenon_error* error);
  /* Writes `size_bytes` bytes of each rank to `out_data`, in the order of the ranks. */
  tenon_status(TENON_CALL* all_gather)(tenon_transport* transport, const void* data, uint64_t size_bytes, void* out_data,
                                       uint64_t* out_collective, tenon_error* error);
  /* Returns when that collective and all before it have ended. */
  tenon_status(TENON_CALL* wait)(tenon_transport* transport, uint64_t collective, tenon_error* error);
  /* Ends all processes, if the transport can, and does not return then; `reason` is printed. Any thread. */
  void(TENON_CALL* abort)(tenon_transport* transport, const char* reason);
} tenon_transport_table;

typedef struct tenon_transport_info {
  uint32_t struct_size;
  uint32_t abi_major;         /* the first four fields have this place in every version */
  uint32_t abi_minor_lowest;  /* the minors that it works with */
  uint32_t abi_minor_highest; /* that of the header that it was built with */
  const char* name;           /* "mpi": [a-z][a-z0-9_]*, that of the file */
  const char* version;        /* of the plugin */
  const char* description;    /* "Open MPI 4.1.4" */
  const char* requirements;   /* what has to be installed; may be NULL */
  /* Connects the processes. Called once in a process. */
  tenon_status(TENON_CALL* create)(const tenon_transport_request* request, tenon_transport** out_transport,
                                   const tenon_transport_table** out_table, tenon_error* error);
} tenon_transport_info;

/* Pure and repeatable: it connects nothing. */
TENON_EXPORT tenon_status TENON_CALL tenon_transport_query(const tenon_host_info* host, tenon_transport_info* out_info);
typedef tenon_status(TENON_CALL* tenon_transport_query_fn)(const tenon_host_info* host, tenon_transport_info* out_info);
#define TENON_TRANSPORT_QUERY_SYMBOL "tenon_transport_query"

#pragma pack(pop)
#ifdef __cplusplus
}
#endif
#endif /* TENON_TRANSPORT_H */
