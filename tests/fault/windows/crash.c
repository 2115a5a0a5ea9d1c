/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "crash.h"

void crash(void) {
  const volatile uintptr_t nowhere = 64; /* MinGW's raise(SIGSEGV) would exit instead */
  *(volatile int*)nowhere = 1;
}
