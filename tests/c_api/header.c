/* SPDX-License-Identifier: Apache-2.0 */
/* The header of the C API: included first, twice, and next to DLPack's. Compiled as strict C11 and as C++20. */
#include <tenon/runtime.h>

#include <dlpack/dlpack.h>
#include <string.h>
#include <tenon/runtime.h>

TenonError* export_and_release(const TenonTensor* tensor);
TenonError* export_and_release(const TenonTensor* tensor) {
  DLManagedTensor* managed = NULL;
  TenonError* error = tenon_tensor_to_dlpack(tensor, &managed);
  TenonRunOptions options;
  memset(&options, 0, sizeof options);
  options.struct_size = (uint32_t)sizeof options;
  if (error == NULL) managed->deleter(managed);
  return options.cancellation == NULL && TENON_BLAS_gemm != TENON_BLAS_NONE ? error : NULL;
}
