// SPDX-License-Identifier: Apache-2.0
// opencl.h - the ICD loader (libOpenCL.so.1), opened at run time, and its errors.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

#include <tenon/sdk/error.h>

namespace tenon::opencl {

/// The loader's functions, under their own names.
struct Api {
#define TENON_OPENCL(function) decltype(&::function) function = nullptr;
#include "libraries/opencl_functions.h"
#undef TENON_OPENCL
};

/// The table that load_api() has filled.
const Api& api();

/// Opens the ICD loader at the first call. It is never closed: its drivers own threads. `file`: a path or a name for the dynamic loader.
/// Returns an empty text, or what the dynamic loader said.
/// Threads  any
std::string load_api(const char* file);

/// CL_OUT_OF_RESOURCES, ...
std::string name_of(cl_int error);
tenon_status status_of(cl_int error);
/// Throws for every error, with the name of the function that returned it.
void check(cl_int error, const char* function);

}  // namespace tenon::opencl
