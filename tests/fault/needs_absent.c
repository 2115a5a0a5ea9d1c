/* SPDX-License-Identifier: Apache-2.0 */
/* A library that cannot be opened, since it calls a function that the build leaves undefined or puts into a missing library. */
#include <tenon/backend.h>

int tenon_absent_function(void);

TENON_EXPORT tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  (void)host, (void)out_info;
  return tenon_absent_function() == 0 ? TENON_OK : TENON_INTERNAL;
}
