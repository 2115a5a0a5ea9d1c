/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "crash.h"

void crash(void) {
  signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit instead */
  raise(SIGSEGV);
}
