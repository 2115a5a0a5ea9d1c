/* SPDX-License-Identifier: Apache-2.0
 * Times CLBlast's own product of square matrices of f32, without Tenon: the median of some runs for each n, on the first device.
 *
 *   cc -O2 -o clblast_product clblast_product.c -lclblast -lOpenCL
 *   ./clblast_product 512 1024 2048
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { warm_up = 3, max_runs = 21 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_time(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int count, char** sizes) {
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
    fprintf(stderr, "no OpenCL device\n");
    return 1;
  }
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  for (int i = 1; i < count; ++i) {
    const size_t n = (size_t)atoi(sizes[i]), bytes = n * n * sizeof(float);
    float* const values = malloc(bytes);
    for (size_t k = 0; k < n * n; ++k) values[k] = (float)(k % 17) * 0.1f;
    cl_mem matrices[3];
    for (int m = 0; m < 3; ++m) matrices[m] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, bytes, values, NULL);
    double times[max_runs];
    const int runs = n > 1500 ? 9 : max_runs;
    for (int run = -warm_up; run < runs; ++run) {
      const double begin = seconds();
      const CLBlastStatusCode status = CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n, n, 1, matrices[0],
                                                    0, n, matrices[1], 0, n, 0, matrices[2], 0, n, &queue, NULL);
      if (status != CLBlastSuccess) {
        fprintf(stderr, "CLBlastSgemm: status %d\n", (int)status);
        return 1;
      }
      clFinish(queue);
      if (run >= 0) times[run] = seconds() - begin;
    }
    qsort(times, (size_t)runs, sizeof times[0], by_time);
    const double median = times[runs / 2];
    printf("n = %zu: %.3f ms, %.1f GFLOP/s\n", n, median * 1e3, 2.0 * (double)n * (double)n * (double)n / median / 1e9);
    for (int m = 0; m < 3; ++m) clReleaseMemObject(matrices[m]);
    free(values);
  }
  return 0;
}
