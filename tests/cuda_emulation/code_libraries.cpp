// SPDX-License-Identifier: Apache-2.0
// Machine code cannot run here: loading it is answered with cudaErrorNotSupported, so that programs run their other kernels.
#include "state.h"

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* out_library, const void* code, cudaJitOption*, void**, unsigned int, cudaLibraryOption*,
                                void**, unsigned int) {
  return call("cudaLibraryLoadData",
              [&] { return out_library == nullptr || code == nullptr ? cudaErrorInvalidValue : cudaErrorNotSupported; });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*) {
  return call("cudaLibraryGetKernel", [] { return cudaErrorInvalidResourceHandle; });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  return call("cudaLibraryUnload", [] { return cudaErrorInvalidResourceHandle; });
}

}  // extern "C"
