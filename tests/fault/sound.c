/* SPDX-License-Identifier: Apache-2.0 */
/* The template under another name: a faulty plugin without its fault. */
#include <tenon/backend.h>

#undef TENON_EXPORT
#define TENON_EXPORT
#define tenon_backend_query healthy_query
tenon_status healthy_query(const tenon_host_info* host, tenon_backend_info* out_info);
#include "../../plugins/template/template.c"
