// SPDX-License-Identifier: Apache-2.0
#include "libraries/opencl.h"

#include <dlfcn.h>

#include <mutex>

namespace tenon::opencl {
namespace {

Api& table() {
  static Api functions;
  return functions;
}

}  // namespace

const Api& api() {
  return table();
}

std::string load_api(const char* file) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (table().clGetPlatformIDs != nullptr) return {};
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = dlerror();
    return text == nullptr ? "no reason was given" : text;
  }
  Api found;
#define TENON_OPENCL(function)                                                         \
  found.function = reinterpret_cast<decltype(&::function)>(dlsym(library, #function)); \
  if (found.function == nullptr) return std::string(file) + " lacks " #function " of OpenCL 1.2";
#include "libraries/opencl_functions.h"
#undef TENON_OPENCL
  table() = found;
  return {};
}

std::string name_of(cl_int error) {
  switch (error) {
#define TENON_NAME(name) \
  case name:             \
    return #name;
    TENON_NAME(CL_SUCCESS)
    TENON_NAME(CL_DEVICE_NOT_FOUND)
    TENON_NAME(CL_DEVICE_NOT_AVAILABLE)
    TENON_NAME(CL_COMPILER_NOT_AVAILABLE)
    TENON_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    TENON_NAME(CL_OUT_OF_RESOURCES)
    TENON_NAME(CL_OUT_OF_HOST_MEMORY)
    TENON_NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    TENON_NAME(CL_MEM_COPY_OVERLAP)
    TENON_NAME(CL_BUILD_PROGRAM_FAILURE)
    TENON_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    TENON_NAME(CL_INVALID_VALUE)
    TENON_NAME(CL_INVALID_PLATFORM)
    TENON_NAME(CL_INVALID_DEVICE)
    TENON_NAME(CL_INVALID_CONTEXT)
    TENON_NAME(CL_INVALID_COMMAND_QUEUE)
    TENON_NAME(CL_INVALID_HOST_PTR)
    TENON_NAME(CL_INVALID_MEM_OBJECT)
    TENON_NAME(CL_INVALID_BINARY)
    TENON_NAME(CL_INVALID_BUILD_OPTIONS)
    TENON_NAME(CL_INVALID_PROGRAM)
    TENON_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    TENON_NAME(CL_INVALID_KERNEL_NAME)
    TENON_NAME(CL_INVALID_KERNEL)
    TENON_NAME(CL_INVALID_ARG_INDEX)
    TENON_NAME(CL_INVALID_ARG_VALUE)
    TENON_NAME(CL_INVALID_ARG_SIZE)
    TENON_NAME(CL_INVALID_KERNEL_ARGS)
    TENON_NAME(CL_INVALID_WORK_GROUP_SIZE)
    TENON_NAME(CL_INVALID_EVENT_WAIT_LIST)
    TENON_NAME(CL_INVALID_EVENT)
    TENON_NAME(CL_INVALID_OPERATION)
    TENON_NAME(CL_INVALID_BUFFER_SIZE)
#undef TENON_NAME
    case -1001:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return "OpenCL error " + std::to_string(error);
  }
}

tenon_status status_of(cl_int error) {
  switch (error) {
    case CL_SUCCESS:
      return TENON_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return TENON_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_FOUND:
      return TENON_DEVICE_NOT_FOUND;
    case CL_DEVICE_NOT_AVAILABLE:
      return TENON_DEVICE_LOST;
    case CL_INVALID_VALUE:
    case CL_INVALID_MEM_OBJECT:
    case CL_MEM_COPY_OVERLAP:
      return TENON_INVALID_ARGUMENT;
    default:
      return TENON_VENDOR_ERROR;
  }
}

void check(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  throw sdk::Error(status_of(error), std::string(function) + ": " + name_of(error));
}

}  // namespace tenon::opencl
