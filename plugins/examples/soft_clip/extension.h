/* SPDX-License-Identifier: Apache-2.0 */
/* extension.h - what the backend `example` and its applications offer each other besides the plugin ABI. A vendor gives such a header to
 * the users of its backend. The structs follow the rules of tenon/backend.h: they begin with their size and grow at their end. */
#ifndef EXAMPLE_EXTENSION_H
#define EXAMPLE_EXTENSION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the backend, for applications: Context::backend_extension("example", EXAMPLE_COUNTERS_NAME, EXAMPLE_COUNTERS_VERSION). */
#define EXAMPLE_COUNTERS_NAME "com.example.counters"
#define EXAMPLE_COUNTERS_VERSION 1u
typedef struct example_counters {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t (*kernels_run)(void); /* since the library was loaded; any thread */
} example_counters;

/* Of an application, for the backend: a HostExtension of the Context. */
#define EXAMPLE_OBSERVER_NAME "com.example.observer"
#define EXAMPLE_OBSERVER_VERSION 1u
typedef struct example_observer {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  void (*kernel_run)(void* context, int64_t elements); /* called after each kernel, on the thread that runs it */
} example_observer;

#ifdef __cplusplus
}
#endif
#endif /* EXAMPLE_EXTENSION_H */
