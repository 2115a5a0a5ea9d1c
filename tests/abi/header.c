/* SPDX-License-Identifier: Apache-2.0 */
/* The header in C: included first, twice, and with its macros in use. Compiled as strict C11 and as C++20. */
#include <tenon/backend.h>

#include <tenon/backend.h>
#include <tenon/backend_helpers.h>
#include <tenon/op_digests.h>
#include <tenon/transport.h>

static const tenon_op_digest digests[] = TENON_OP_DIGESTS;

tenon_status TENON_CALL tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  if (!TENON_HAS(host, tenon_host_info, platform)) return TENON_INCOMPATIBLE;
  if (TENON_HAS(out_info, tenon_backend_info, digests)) {
    out_info->digests = digests;
    out_info->digest_count = (uint32_t)(sizeof digests / sizeof digests[0]);
  }
  return TENON_DTYPE_BIT(TENON_DTYPE_F32) & TENON_DTYPES_FLOAT ? TENON_OK : TENON_INTERNAL;
}
