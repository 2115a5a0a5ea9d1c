/* SPDX-License-Identifier: Apache-2.0 */
/* A program in Visual Studio's ABI that calls tenon.dll through tenon.lib. Its exit code is the number of the step that failed, or 0. */
#include <stddef.h>
#include <string.h>

#include <tenon/runtime.h>

__declspec(dllimport) void __stdcall ExitProcess(unsigned code);

int _fltused = 1;

static unsigned first_failure(void) {
  TenonContext* context = NULL;
  TenonTensor* x = NULL;
  TenonTensor* results[1] = {NULL};
  TenonContextOptions options;
  char* devices = NULL;
  float sums[2] = {0, 0};
  const float numbers[2] = {1.5f, -2};
  const int64_t sizes[1] = {2};
  const TenonTensor* operands[2];
  uint64_t count = 0;

  if (strcmp(tenon_version(), TENON_VERSION) != 0) return 1;
  memset(&options, 0, sizeof options);
  options.struct_size = (uint32_t)sizeof options;
  options.config = "{device: reference}";
  if (tenon_context_create(&options, &context) != NULL) return 2;
  if (tenon_context_devices(context, &devices) != NULL || strstr(devices, "reference:0") == NULL) return 3;
  tenon_string_free(devices);
  if (tenon_tensor_copy_of(numbers, TENON_DTYPE_F32, 1, sizes, NULL, &x) != NULL) return 4;
  operands[0] = operands[1] = x;
  if (tenon_apply_named(context, NULL, "Add", NULL, operands, 2, results, 1, &count) != NULL || count != 1) return 5;
  if (tenon_tensor_read(results[0], sums, sizeof sums) != NULL || sums[0] != 3 || sums[1] != -4) return 6;
  tenon_release(results[0]);
  tenon_release(x);
  tenon_release(context);
  return 0;
}

void start(void) {
  ExitProcess(first_failure());
}
