/* SPDX-License-Identifier: Apache-2.0 */
/* A second public symbol, which a backend must not have. */
#include <tenon/backend.h>

TENON_EXPORT int tenon_second_symbol(void);
int tenon_second_symbol(void) {
  return 2;
}
