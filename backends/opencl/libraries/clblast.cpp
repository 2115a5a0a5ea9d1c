// SPDX-License-Identifier: Apache-2.0
#include "libraries/clblast.h"

#include <dlfcn.h>

#include <mutex>

namespace tenon::opencl {
namespace {

/// An empty text, or why the library is not usable.
std::string open_clblast(const char* file, Clblast& out_functions) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = dlerror();
    return text == nullptr ? "no reason was given" : text;
  }
#define TENON_CLBLAST(function)                                                                \
  out_functions.function = reinterpret_cast<decltype(&::function)>(dlsym(library, #function)); \
  if (out_functions.function == nullptr) return std::string(file) + " lacks " #function;
#include "libraries/clblast_functions.h"
#undef TENON_CLBLAST
  return {};
}

}  // namespace

const Clblast* clblast(const sdk::Host& host) {
  static std::mutex mutex;
  static Clblast functions;
  static int state = 0;  // 1: open, -1: not usable
  const std::lock_guard lock(mutex);
  if (state == 0) {
    const char* const file = host.option("clblast");
    const std::string failure = open_clblast(file == nullptr ? "libclblast.so.1" : file, functions);
    state = failure.empty() ? 1 : -1;
    if (state < 0) {
      host.log(
          TENON_LOG_WARNING,
          ("opencl: CLBlast cannot be opened (" + failure + "), so products use simple kernels; install it (Debian: libclblast1)").c_str());
    }
  }
  return state > 0 ? &functions : nullptr;
}

void check(CLBlastStatusCode status, const char* function) {
  if (status == CLBlastSuccess) return;
  if (status > -1024 && status < 0) check(static_cast<cl_int>(status), function);  // OpenCL's own
  const tenon_status code = status == CLBlastInsufficientMemoryTemp ? TENON_OUT_OF_MEMORY : TENON_VENDOR_ERROR;
  throw sdk::Error(code, std::string(function) + ": CLBlast status " + std::to_string(static_cast<int>(status)));
}

}  // namespace tenon::opencl
