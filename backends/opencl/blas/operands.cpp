// SPDX-License-Identifier: Apache-2.0
#include "blas/operands.h"

namespace tenon::opencl::blas {

Temporary::Temporary(const Stream& stream, std::int64_t size_bytes, const void* content) {
  cl_int error = CL_SUCCESS;
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (content == nullptr ? 0 : CL_MEM_COPY_HOST_PTR);
  buffer_ = api().clCreateBuffer(stream.device().context(), flags, static_cast<std::size_t>(std::max<std::int64_t>(size_bytes, 1)),
                                 const_cast<void*>(content), &error);
  stream.device().check(error, "clCreateBuffer");
}

Temporary::~Temporary() {
  api().clReleaseMemObject(buffer_);
}

Numbers::Numbers(const Stream& stream, const tenon_scalar& given, std::int64_t size_bytes)
    : stream_(stream), given_(given), size_bytes_(static_cast<std::size_t>(size_bytes)) {
  if (given.on_device != 0) {
    place_ = stream.device().place_of(sdk::detail::pointer<void>(given.address));
  } else {
    memory_ = std::make_unique<Temporary>(stream, size_bytes, sdk::detail::pointer<void>(given.address));
  }
}

void Numbers::finish() {
  if (!memory_) return;
  void* const host = sdk::detail::pointer<void>(given_.address);
  stream_.device().check(api().clEnqueueReadBuffer(stream_.queue(), place().buffer, CL_TRUE, 0, size_bytes_, host, 0, nullptr, nullptr),
                         "clEnqueueReadBuffer");
}

}  // namespace tenon::opencl::blas
