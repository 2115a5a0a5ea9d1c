/* SPDX-License-Identifier: Apache-2.0 */
/* crash.h - ends the process by an access violation. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
void crash(void);
#ifdef __cplusplus
}
#endif
