// A cuBLAS that says it is of another major version than its name: what a folder of two toolkits mixed up has.
#include <cublas_v2.h>

extern "C" __attribute__((visibility("default"))) cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? TENON_EMULATED_VERSION - 1 : 0;
  return CUBLAS_STATUS_SUCCESS;
}
