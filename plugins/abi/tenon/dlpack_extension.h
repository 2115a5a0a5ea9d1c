/* SPDX-License-Identifier: Apache-2.0 */
/* tenon/dlpack_extension.h - how a backend says where DLPack finds the memory of its devices.
 *
 * A backend whose device addresses are pointers of a device type of DLPack offers this struct by its slot `extension`. Tensors on its
 * devices are then exchanged with other libraries in place. Device i of the backend is device i of DLPack. */
#ifndef TENON_DLPACK_EXTENSION_H
#define TENON_DLPACK_EXTENSION_H

#include <stdint.h>

#define TENON_DLPACK_EXTENSION "tenon.dlpack"
#define TENON_DLPACK_EXTENSION_VERSION 1u

typedef struct tenon_dlpack_extension {
  uint32_t struct_size;
  int32_t device_type; /* a DLDeviceType: 2 is kDLCUDA, 10 kDLROCM */
} tenon_dlpack_extension;

#endif /* TENON_DLPACK_EXTENSION_H */
