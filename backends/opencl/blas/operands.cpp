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

Numbers::Numbers(const Stream& stream, const tenon_scalar& given, std::size_t size_bytes)
    : stream_(stream), host_(given.on_device != 0 ? nullptr : sdk::detail::pointer<void>(given.address)), size_bytes_(size_bytes) {
  const auto bytes = static_cast<std::int64_t>(size_bytes);
  if (host_ != nullptr) {
    copy_.emplace(stream, bytes, host_);
    return;
  }
  place_ = stream.device().place_of(sdk::detail::pointer<void>(given.address));
  if (place_.offset % (size_bytes % 8 == 0 ? 8 : 4) == 0) return;
  copy_.emplace(stream, bytes);
  stream.device().check(
      api().clEnqueueCopyBuffer(stream.queue(), place_.buffer, place().buffer, place_.offset, 0, size_bytes, 0, nullptr, nullptr),
      "clEnqueueCopyBuffer");
}

void Numbers::finish() {
  if (!copy_) return;
  if (host_ != nullptr) {
    stream_.device().check(api().clEnqueueReadBuffer(stream_.queue(), place().buffer, CL_TRUE, 0, size_bytes_, host_, 0, nullptr, nullptr),
                           "clEnqueueReadBuffer");
  } else {
    stream_.device().check(
        api().clEnqueueCopyBuffer(stream_.queue(), place().buffer, place_.buffer, 0, place_.offset, size_bytes_, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
  }
}

}  // namespace tenon::opencl::blas
