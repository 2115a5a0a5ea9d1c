/* SPDX-License-Identifier: Apache-2.0 */
/* misbehaving.c - the template backend with one fault: it crashes, hangs or exits at MISBEHAVES_WHEN. A report must survive it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/backend.h>

#define tenon_backend_query template_query
#undef TENON_EXPORT
#define TENON_EXPORT static
#include "../../plugins/template/template.c"
#undef tenon_backend_query

enum { ASKED_CRASH = 1, CREATED_CRASH, CREATED_HANG, CREATED_EXIT, CREATED_ABORT, CLOSED_CRASH, ENDED_CRASH };

/* Restore the default handler first: a sanitizer's handler would exit instead. */
static void crash(void) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

static tenon_backend_table bad_table;

static void bad_destroy(tenon_backend* backend) {
  crash();
}

__attribute__((destructor)) static void ended(void) {
  if (MISBEHAVES_WHEN == ENDED_CRASH) crash();
}

static tenon_status bad_create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table,
                               tenon_error* error) {
  if (MISBEHAVES_WHEN == CREATED_CRASH) crash();
  if (MISBEHAVES_WHEN == CREATED_EXIT) _exit(7);
  if (MISBEHAVES_WHEN == CREATED_ABORT) {
    fputs("vendor: giving up\n", stdout);
    fflush(stdout);
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  while (MISBEHAVES_WHEN == CREATED_HANG) sleep(1);
  const tenon_status status = create(host, out_backend, out_table, error);
  if (status != TENON_OK) return status;
  bad_table = table;
  if (MISBEHAVES_WHEN == CLOSED_CRASH) bad_table.destroy = bad_destroy;
  *out_table = &bad_table;
  return TENON_OK;
}

__attribute__((visibility("default"))) tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  if (MISBEHAVES_WHEN == ASKED_CRASH) crash();
  const tenon_status status = template_query(host, out_info);
  out_info->name = "misbehaving";
  out_info->create = bad_create;
  return status;
}
