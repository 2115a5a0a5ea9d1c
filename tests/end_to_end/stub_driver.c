/* SPDX-License-Identifier: Apache-2.0 */
/* stub_driver.c - a libcuda.so.1 without devices. STUB_DRIVER_VERSION is its version (11020 is CUDA 11.2), STUB_DRIVER_INIT the result of
   cuInit (100: no device). It has the functions that NVIDIA's runtime calls before it gives up. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { invalid_value = 1, no_device = 100, not_found = 500 };

static int from_environment(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text != NULL ? atoi(text) : otherwise;
}

EXPORT int cuDriverGetVersion(int* out_version) {
  *out_version = from_environment("STUB_DRIVER_VERSION", 13000);
  return 0;
}

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  return from_environment("STUB_DRIVER_INIT", no_device);
}

EXPORT int cuGetExportTable(const void** out_table, const void* id) {
  (void)id;
  *out_table = NULL;
  return not_found;
}

static int never_called(void) {
  return invalid_value;
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** out_function, int version, unsigned long long flags, int* out_found) {
  (void)version;
  (void)flags;
  void* self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  *out_function = dlsym(self, strcmp(symbol, "cuGetProcAddress") == 0 ? "cuGetProcAddress_v2" : symbol);
  dlclose(self);
  if (*out_function == NULL) {
    int (*function)(void) = never_called;
    memcpy(out_function, &function, sizeof function); /* ISO C has no cast from a function to void* */
  }
  if (out_found != NULL) *out_found = 0;
  return 0;
}
