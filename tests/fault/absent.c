/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's library that exists when a plugin is linked and is missing when it is loaded. */
#include <tenon/backend.h>

TENON_EXPORT int tenon_absent_function(void);
int tenon_absent_function(void) {
  return 0;
}
