// SPDX-License-Identifier: Apache-2.0
// clblast.h - CLBlast (libclblast.so.1), opened at first use.
#pragma once

#include "libraries/opencl.h"
// CLBlast's header includes OpenCL's: it comes second.
#include <clblast_c.h>

#include <string>

#include <tenon/sdk/host.h>

namespace tenon::opencl {

/// Its functions, under their own names.
struct Clblast {
#define TENON_CLBLAST(function) decltype(&::function) function = nullptr;
#include "libraries/clblast_functions.h"
#undef TENON_CLBLAST
};

/// NULL if it cannot be opened: a warning says so once.
/// Threads  any
const Clblast* clblast(const sdk::Host& host);

/// Throws for every error, with the name of the function that returned it.
void check(CLBlastStatusCode status, const char* function);

}  // namespace tenon::opencl
