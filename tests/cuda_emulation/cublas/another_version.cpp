// A cuBLAS that says it is of another major version than its name: what a folder of two toolkits mixed up has.
#include <library_types.h>

extern "C" __attribute__((visibility("default"))) int cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? TENON_EMULATED_VERSION - 1 : 0;
  return 0;
}
