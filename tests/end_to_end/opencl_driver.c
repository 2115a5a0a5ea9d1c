/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_driver.c - an ICD loader with the devices of the machine, and faults on request. The backend finds what is not defined here in
   libOpenCL.so.1, which this library needs. The environment says what is wrong:

     OPENCL_DRIVER_WITHOUT   an extension that no device has
     OPENCL_DRIVER_GPU       whether all devices say that they are GPUs
     OPENCL_DRIVER_BREAKS    a text: a program whose source has it does not compile
     OPENCL_DRIVER_LIMIT     bytes of buffers that one device has memory for
     OPENCL_DRIVER_CLOCK     nanoseconds by which every other time of an event is too early */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

static atomic_size_t allocated;

EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size, void* value, size_t* out_size) {
  cl_int result = NEXT(clGetDeviceInfo)(device, name, size, value, out_size);
  if (result == CL_SUCCESS && name == CL_DEVICE_TYPE && value != NULL && getenv("OPENCL_DRIVER_GPU") != NULL) {
    *(cl_device_type*)value = CL_DEVICE_TYPE_GPU;
  }
  const char* without = getenv("OPENCL_DRIVER_WITHOUT");
  if (result == CL_SUCCESS && name == CL_DEVICE_EXTENSIONS && value != NULL && without != NULL) {
    char* found = strstr(value, without);
    if (found != NULL) memset(found, ' ', strlen(without));
  }
  return result;
}

EXPORT cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info name, size_t size, void* value, size_t* out_size) {
  cl_int result = NEXT(clGetEventProfilingInfo)(event, name, size, value, out_size);
  static atomic_uint calls;
  const char* inexact = getenv("OPENCL_DRIVER_CLOCK");
  if (result == CL_SUCCESS && value != NULL && inexact != NULL && atomic_fetch_add(&calls, 1) % 2 == 1) {
    *(cl_ulong*)value -= strtoull(inexact, NULL, 10);
  }
  return result;
}

EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts, const size_t* sizes, cl_int* out_error) {
  const char* breaks = getenv("OPENCL_DRIVER_BREAKS");
  const char* with_error[8];
  if (breaks != NULL && sizes == NULL && count < 8) {
    for (cl_uint i = 0; i < count; ++i) {
      if (strstr(texts[i], breaks) == NULL) continue;
      memcpy(with_error, texts, count * sizeof *texts);
      with_error[count] = "\n#error planted by the test\n";
      return NEXT(clCreateProgramWithSource)(context, count + 1, with_error, NULL, out_error);
    }
  }
  return NEXT(clCreateProgramWithSource)(context, count, texts, sizes, out_error);
}

EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* out_error) {
  const char* limit = getenv("OPENCL_DRIVER_LIMIT");
  if (limit != NULL && atomic_load(&allocated) + size > (size_t)strtoull(limit, NULL, 10)) {
    *out_error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
  }
  cl_mem buffer = NEXT(clCreateBuffer)(context, flags, size, host, out_error);
  if (buffer != NULL) atomic_fetch_add(&allocated, size);
  return buffer;
}

EXPORT cl_int clReleaseMemObject(cl_mem buffer) {
  size_t size = 0;
  NEXT(clGetMemObjectInfo)(buffer, CL_MEM_SIZE, sizeof size, &size, NULL);
  cl_int result = NEXT(clReleaseMemObject)(buffer);
  if (result == CL_SUCCESS) atomic_fetch_sub(&allocated, size);
  return result;
}
