// SPDX-License-Identifier: Apache-2.0
#include "platform/unbuffered_file.h"

#include <fcntl.h>

#include <cerrno>

namespace tenon::platform {

File open_unbuffered(const std::string& path, std::error_code& out_error) {
#if defined(O_DIRECT)
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  out_error = descriptor < 0 ? std::error_code(errno, std::generic_category()) : std::error_code();
  return File(descriptor);
#else
  out_error = std::make_error_code(std::errc::not_supported);
  return File();
#endif
}

}  // namespace tenon::platform
