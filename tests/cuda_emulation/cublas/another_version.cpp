// SPDX-License-Identifier: Apache-2.0
// A cuBLAS that reports another major version than its file name, as in a folder with two mixed toolkits.
#include <cublas_v2.h>

extern "C" __attribute__((visibility("default"))) cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR - 1 : 0;
  return CUBLAS_STATUS_SUCCESS;
}
