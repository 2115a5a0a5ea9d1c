/* SPDX-License-Identifier: Apache-2.0
 * Sums the time of each OpenCL kernel of a process, CLBlast's included, and prints it at the end. It waits for each kernel.
 *
 *   cc -shared -fPIC -o kernel_times.so kernel_times.c -Wl,--no-as-needed -lOpenCL -ldl
 *   LD_PRELOAD=$PWD/kernel_times.so tenon train ... --set backends.options.opencl.icd_loader=$PWD/kernel_times.so --trust
 *
 * CLBlast finds this library before the loader, and the backend is given it as the loader: what is not defined here is found in the loader,
 * which this library links.
 */
#define CL_TARGET_OPENCL_VERSION 120
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { max_kernels = 512 };
static struct {
  char name[64];
  double milliseconds;
  long count;
} kernels[max_kernels];
static int kernel_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int by_time(const void* a, const void* b) {
  const double x = ((const double*)((const char*)a + 64))[0], y = ((const double*)((const char*)b + 64))[0];
  return x < y ? 1 : x > y ? -1 : 0;
}

static void print(void) {
  double total = 0;
  for (int i = 0; i < kernel_count; ++i) total += kernels[i].milliseconds;
  qsort(kernels, (size_t)kernel_count, sizeof kernels[0], by_time);
  fprintf(stderr, "%10.1f ms in all kernels\n", total);
  for (int i = 0; i < kernel_count; ++i)
    fprintf(stderr, "%10.1f ms %5.1f %% %7ld x %s\n", kernels[i].milliseconds, 100 * kernels[i].milliseconds / total, kernels[i].count,
            kernels[i].name);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
                              const size_t* local, cl_uint wait_count, const cl_event* waits, cl_event* out_event) {
  static cl_int (*enqueue)(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const cl_event*,
                           cl_event*);
  pthread_mutex_lock(&mutex);
  if (enqueue == NULL) {
    void* const loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    *(void**)&enqueue = dlsym(loader, "clEnqueueNDRangeKernel");
    atexit(print);
  }
  pthread_mutex_unlock(&mutex);
  cl_event event = NULL;
  const cl_int error = enqueue(queue, kernel, dimensions, offset, global, local, wait_count, waits, &event);
  if (error != CL_SUCCESS) return error;
  clWaitForEvents(1, &event);
  cl_ulong begin = 0, end = 0;
  clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL);
  clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
  char name[64] = "";
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL);
  pthread_mutex_lock(&mutex);
  int i = 0;
  while (i < kernel_count && strcmp(kernels[i].name, name) != 0) ++i;
  if (i < max_kernels) {
    if (i == kernel_count) strcpy(kernels[kernel_count++].name, name);
    kernels[i].milliseconds += (double)(end - begin) * 1e-6;
    ++kernels[i].count;
  }
  pthread_mutex_unlock(&mutex);
  if (out_event != NULL)
    *out_event = event;
  else
    clReleaseEvent(event);
  return CL_SUCCESS;
}
